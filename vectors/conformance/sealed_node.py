"""The node of node.py with a swarm key, as docs/spec/envelope.md describes it. Written from that page alone."""

import os
import struct

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

import datagrams
import envelope
from node import MS, Node

EPOCH = 0


class Member:
    """What is known of another node's keys."""

    def __init__(self):
        self.handshake, self.challenge, self.challenged_at = None, None, 0
        self.secrets, self.opens, self.seals, self.answers = {}, None, None, {}
        self.newest, self.seen = 0, set()


class SealedNode(Node):
    def __init__(self, swarm_key, ahead_ns=0):
        self.static = X25519PrivateKey.generate()
        number = envelope.node_number(self.static.public_key().public_bytes_raw())
        super().__init__(node=number, ahead_ns=ahead_ns)
        self.swarm, self.own_secret, self.counter, self.members = envelope.swarm_secret(swarm_key), os.urandom(32), 0, {}

    def next_counter(self):
        """Below 2^16, so this node stays in its first generation."""
        self.counter += 1
        return self.counter

    def sender_key(self, node):
        return envelope.derived(self.swarm, b"sender", node)

    def sealed_for_all(self, kind, body):
        epoch = EPOCH if kind == envelope.ALL else 0
        return envelope.seal(kind, epoch, self.node, self.next_counter(), self.sender_key(self.node), body)

    def send_to_group(self, data):
        super().send_to_group(self.sealed_for_all(envelope.ALL, data))

    def send(self, data, remote):
        if data[:4] == b"NCTD":
            return super().send(self.sealed_for_all(envelope.ALL, data), remote)
        member = self.members.get(remote.node)
        if not member or not member.seals:
            return self.count("not sent: no key")
        counter, key = self.next_counter(), envelope.derived(self.own_secret, b"node", member.seals)
        if data[0] >= 128:
            sealed = envelope.seal_short(data[:3], counter, key, self.node, remote.node, data[3:])
        else:
            sealed = envelope.seal(envelope.ONE, EPOCH, self.node, counter, key, data)
        return super().send(sealed, remote)

    def handle(self, data, address):
        try:
            if data[0] >= 128:
                self.handle_short(data, address)
            else:
                self.handle_envelope(data, address)
        except InvalidTag:
            self.count("does not open")

    def handle_envelope(self, data, address):
        datagrams.require(data[:4] == b"NCTX" and len(data) >= 48, "not sealed")
        version, kind, epoch, node, counter = struct.unpack_from("<BBH16sQ", data, 4)
        datagrams.require(version == 2)
        if node == self.node:
            return
        member = self.members.setdefault(node, Member())
        if kind not in (envelope.ALL, envelope.CHALLENGE, envelope.ANSWER):
            datagrams.require(member.secrets, "before the answer")
            body = envelope.open_sealed(data, self.key_of(member, epoch, counter))
            return self.accept(member, counter, body, address)
        body = envelope.open_sealed(data, self.sender_key(node))
        if kind == envelope.CHALLENGE and body[:16] == self.node:
            self.answer(node, member, body[16:], address)
        if kind == envelope.ANSWER and body[:16] == self.node:
            self.handle_answer(node, member, body[16:], counter)
        elif not member.secrets:
            self.challenge(node, member, address)
        elif kind == envelope.ALL:
            datagrams.require(body[8:24] == node, "number of another node")
            self.accept(member, counter, body, address)

    def accept(self, member, counter, body, address):
        datagrams.require(counter not in member.seen, "replay")
        member.seen.add(counter)
        member.newest = max(member.newest, counter)
        super().handle(body, address)

    def key_of(self, member, epoch, counter):
        """Of a datagram of kind 4 or with a short header."""
        generation, secret = member.secrets[epoch]
        datagrams.require(counter >> 16 >= generation, "generation")
        secret = envelope.after_generations(secret, (counter >> 16) - generation)
        return envelope.derived(secret, b"node", member.opens)

    def handle_short(self, data, address):
        number = struct.unpack_from("<H", data, 1)[0]
        remote = next((remote for remote in self.remotes.values() if remote.mine == number), None)
        datagrams.require(remote, "unknown link")
        member = self.members[remote.node]
        counter = datagrams.nearest(int.from_bytes(data[3:6], "little"), 24, member.newest)
        key = self.key_of(member, min(member.secrets), counter)
        body = envelope.open_short(data, counter, key, remote.node, self.node)
        self.count("short headers opened")
        self.accept(member, counter, data[:3] + body, address)

    def challenge(self, node, member, address):
        if self.now() - member.challenged_at < 20 * MS:
            return
        member.challenged_at = self.now()
        if not member.challenge:
            secret = envelope.derived(self.swarm, b"handshake")
            member.handshake = envelope.Handshake(self.node, node, secret, self.static)
            member.challenge = member.handshake.write_challenge(bytes(80))
        self.socket.sendto(self.sealed_for_all(envelope.CHALLENGE, node + member.challenge), address)

    def handle_answer(self, node, member, message, counter):
        if member.secrets or not member.challenge:
            return
        payload = member.handshake.read_answer(message)
        datagrams.require(envelope.node_number(member.handshake.their_static) == node, "number")
        is_new, has_next, epoch, next_epoch, _, generation = struct.unpack_from("<BBHHHQ", payload)
        datagrams.require(is_new == 1, "a pair that we never had")
        member.secrets[epoch] = (generation, payload[16:48])
        if has_next:
            member.secrets[next_epoch] = (generation, payload[48:])
        member.opens, member.newest = member.handshake.pair(), counter

    def answer(self, node, member, message, address):
        """A repeated challenge is the same message in a new seal, and so is its answer."""
        if message not in member.answers:
            secret = envelope.derived(self.swarm, b"handshake")
            handshake = envelope.Handshake(node, self.node, secret, self.static)
            opens, _ = struct.unpack_from("<QQ", handshake.read_challenge(message))
            datagrams.require(envelope.node_number(handshake.their_static) == node, "number")
            is_new = not member.seals or opens != envelope.number_of_pair(member.seals)
            payload = struct.pack("<BBHHHQ", is_new, 0, EPOCH, 0, 0, 0) + self.own_secret + bytes(32)
            member.answers = {message: handshake.write_answer(payload)}
            if is_new:
                member.seals = handshake.pair()
        self.socket.sendto(self.sealed_for_all(envelope.ANSWER, node + member.answers[message]), address)
