"""A small node of Noctule: it finds others, receives and sends samples, answers the clock exchange. Written from docs/spec alone.

One endpoint page, IPv4, one interface; best effort and reliable; every queue is as long as its test. With a swarm key see `sealed_node.py`.
"""

import os
import random
import select
import socket
import struct
import time

import datagrams
from datagrams import BEST_EFFORT, DEADLINE, DEADLINE_ALONE, FEEDBACK, FLOW, NOTHING, RELIABLE

MS, SECOND = 10**6, 10**9
SEED = 7
PART_BYTES = 1100
WINDOW = 64
GROUP = int.from_bytes(socket.inet_aton("239.193.0.0"), "big")


def host_number():
    boot = open("/proc/sys/kernel/random/boot_id", "rb").read()
    return datagrams.siphash(boot + struct.pack("<Q", os.stat("/proc/self/ns/net").st_ino))


class Remote:
    """What is known of another node, and the link to it."""

    def __init__(self, node, address):
        self.node, self.address = node, address
        self.hello, self.pages, self.complete_revision, self.query_at = None, {}, 0, 0
        self.mine, self.yours, self.is_mine_known = random.randrange(1, 2**16), 0, False
        self.clock, self.clock_read_at, self.long_sent_at = 0, 0, 0
        self.arrived, self.refused, self.newest, self.newest_at, self.owes_feedback_since = set(), set(), -1, 0, None
        self.their_next, self.next_packet, self.in_flight = 0, 0, {}
        self.streams, self.sent = {}, {}
        self.asked, self.offset = {}, None

    def endpoints(self):
        return [endpoint for page in self.pages.values() for endpoint in page["endpoints"]]

    def is_complete(self):
        revisions = [self.pages[n]["revision"] if n in self.pages else 0 for n in range(self.hello["pages"])]
        return datagrams.digest(revisions) == self.hello["digest"]


class Stream:
    """Samples of another node's writer."""

    def __init__(self, first=None):
        self.next, self.parts, self.waiting, self.newest, self.limit = first, {}, {}, 0, 0


class Node:
    def __init__(self, address="127.0.0.1", host=None, node=None, ahead_ns=0):
        """With a host number of its own, samples come and go by UDP even on loopback; `ahead_ns` sets its clock apart from the host's."""
        self.node, self.domain, self.ahead_ns = node or os.urandom(16), 0, ahead_ns
        self.random = random.Random(SEED)
        self.host = random.getrandbits(64) if host is None else host
        self.endpoints, self.revision, self.remotes, self.samples, self.counts = [], 0, {}, [], {}
        self.drop_received = self.drop_sent = 0.0
        self.secret = os.urandom(16)
        self.group = socket.inet_ntoa((GROUP + 32 * self.domain).to_bytes(4, "big"))
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("0.0.0.0", 0))
        self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
        self.of_group = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.of_group.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.of_group.bind((self.group, 7399))
        member = socket.inet_aton(self.group) + socket.inet_aton(address)
        self.of_group.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
        self.first_hellos, self.start = [0, 30, 120, 400], self.now()
        self.hello_at = self.start

    def now(self):
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW) + self.ahead_ns

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def endpoint(self, topic, is_reader, reliability=0, formats=0xFFF, type_name="", durability=0):
        """Reliability 0 best effort, 2 reliable."""
        values = [len(self.endpoints) + 1, int(is_reader), reliability, durability, 0, formats, 2**20, 0]
        values += [datagrams.FOREVER, datagrams.FOREVER, 1, 8]
        endpoint = dict(zip(datagrams.ENDPOINT_FIELDS, values)) | {"topic": topic, "type": type_name}
        self.endpoints.append(endpoint)
        self.revision += 1
        return endpoint

    def found(self, topic, is_reader):
        for remote in list(self.remotes.values()):
            for endpoint in remote.endpoints():
                if endpoint["topic"] == topic and endpoint["is_reader"] == is_reader:
                    return remote, endpoint
        return None

    # ------------------------------------------------------------------------------------------------ loop

    def run_until(self, is_done, seconds):
        """Whether it became true in time."""
        end = self.now() + int(seconds * SECOND)
        while not is_done():
            if self.now() > end:
                return False
            self.turn()
        return True

    def turn(self):
        t = self.now()
        if t >= self.hello_at:
            self.send_hello(bool(self.first_hellos))
            self.send_pages()
            self.first_hellos = self.first_hellos[1:]
            self.hello_at = self.start + self.first_hellos[0] * MS if self.first_hellos else t + random.randint(900, 1000) * MS
        for remote in list(self.remotes.values()):
            self.remote_timers(remote, t)
        for ready in select.select([self.socket, self.of_group], [], [], 0.001)[0]:
            data, address = ready.recvfrom(65536)
            try:
                self.handle(data, address)
            except datagrams.Malformed as why:
                self.count(f"malformed: {why}")

    def remote_timers(self, remote, t):
        if remote.query_at and t > remote.query_at:
            remote.query_at = t + 80 * MS
            missing = [number for number in range(remote.hello["pages"]) if number not in remote.pages]
            newer = [n for n, page in remote.pages.items() if page["revision"] > remote.complete_revision]
            body = datagrams.query_body(remote.node, remote.complete_revision, newer if missing else [])
            self.send(datagrams.discovery(datagrams.QUERY, self.node, self.domain, body), remote)
        if remote.owes_feedback_since is not None and t - remote.owes_feedback_since > 2 * MS:
            self.send_on_link(remote, NOTHING, b"")
        for packet, sent in list(remote.in_flight.items()):
            if t - sent["at"] > 300 * MS:
                self.retransmit(remote, packet)

    def send(self, data, remote):
        self.socket.sendto(data, remote.address)

    def send_to_group(self, data):
        self.socket.sendto(data, (self.group, 7399))

    def handle(self, data, address):
        if data[:4] == b"NCTD":
            self.handle_discovery(datagrams.parse_discovery(data), address)
        elif data[:4] == b"NCTS":
            self.handle_clock(data, address)
        elif data[:4] == b"NCTM" or data[0] >= 128:
            self.handle_link(data, address)
        else:
            self.count(f"other: {data[:4].hex()}")

    # ------------------------------------------------------------------------------------------- discovery

    def hello_body(self, wants_answers):
        pages = [self.revision] if self.endpoints else []
        port = self.socket.getsockname()[1]
        return datagrams.hello_body(
            self.revision, len(pages), 50, port, wants_answers, self.host, datagrams.digest(pages), "conformance"
        )

    def send_hello(self, wants_answers):
        self.send_to_group(datagrams.discovery(datagrams.HELLO, self.node, self.domain, self.hello_body(wants_answers)))

    def send_pages(self):
        body = datagrams.page_body(0, self.revision, self.endpoints)
        self.send_to_group(datagrams.discovery(datagrams.PAGE, self.node, self.domain, body))

    def challenge_number(self, node, address):
        return datagrams.siphash(node + repr(address).encode(), self.secret)

    def handle_discovery(self, found, address):
        if found["domain"] != self.domain or found["node"] == self.node:
            return
        kind, remote = found["kind"], self.remotes.get(found["node"])
        if kind in (datagrams.HELLO, datagrams.RESPONSE):
            self.handle_hello(found, remote, (address[0], found["port"]))
        elif kind == datagrams.PAGE and remote:
            known = remote.pages.get(found["page"])
            if not known or known["revision"] < found["revision"]:
                remote.pages[found["page"]] = found
                self.compare(remote)
        elif kind == datagrams.QUERY and found["asked"] == self.node:
            self.send_pages() if found["revision"] < self.revision else self.send_hello(False)
        elif kind == datagrams.BYE:
            self.remotes.pop(found["node"], None)
        elif kind == datagrams.CHALLENGE and found["asked"] == self.node:
            body = struct.pack("<Q", found["challenge"]) + self.hello_body(False)
            answer = datagrams.discovery(datagrams.RESPONSE, self.node, self.domain, body)
            self.send(answer, Remote(found["node"], address))

    def handle_hello(self, found, remote, locator):
        number = self.challenge_number(found["node"], locator)
        if found["kind"] == datagrams.RESPONSE:
            datagrams.require(found["challenge"] == number, "challenge")
        elif not remote and not locator[0].startswith("127."):
            body = struct.pack("<16sQ", found["node"], number)
            challenge = datagrams.discovery(datagrams.CHALLENGE, self.node, self.domain, body)
            return self.send(challenge, Remote(found["node"], locator))
        if not remote:
            remote = self.remotes[found["node"]] = Remote(found["node"], locator)
            self.send_hello(False)
            self.send_pages()
        remote.hello = found
        self.compare(remote)
        if found["wants_answers"]:
            self.send_hello(False)

    def compare(self, remote):
        if remote.is_complete():
            remote.complete_revision, remote.query_at = remote.hello["revision"], 0
        else:
            remote.query_at = remote.query_at or self.now() + 15 * MS

    # -------------------------------------------------------------------------------------- clock exchange

    def handle_clock(self, data, address):
        t = self.now()
        datagrams.require(len(data) == 32 and data[4] == 1 and data[5] in (1, 2) and data[6:8] == b"\0\0")
        if data[5] == 1:
            self.count("clock requests")
            remote = next((r for r in self.remotes.values() if r.address == address), None)
            return remote and self.send(datagrams.sync_reply(data, t, self.now()), remote)
        nonce, t2, t3 = struct.unpack_from("<Qqq", data, 8)
        for remote in self.remotes.values():
            t1 = remote.asked.pop(nonce, None)
            if t1 is not None:
                remote.offset = (t3 - t, t2 - t1)

    def ask_clock(self, remote):
        nonce = random.getrandbits(64)
        remote.asked[nonce] = self.now()
        self.send(datagrams.sync_request(nonce), remote)

    # ---------------------------------------------------------------------------------------------- links

    def session(self, remote):
        return int.from_bytes(self.node[:4], "little") ^ int.from_bytes(remote.node[:4], "little")

    def handle_link(self, data, address):
        header, body = datagrams.parse_header(data)
        is_long, t = "session" in header, self.now()
        matches = [r for r in self.remotes.values() if (r.address == address if is_long else r.mine == header["link"])]
        datagrams.require(matches, "unknown link")
        remote = matches[0]
        if is_long:
            datagrams.require(header["session"] == self.session(remote), "session")
            remote.yours, remote.is_mine_known = header["mine"], header["yours"] == remote.mine
            remote.clock, remote.clock_read_at, remote.their_next = header["clock"], t, header["next"]
        else:
            remote.is_mine_known = True
        near = datagrams.Near(
            remote.clock + t - remote.clock_read_at, max(remote.newest + 1, remote.their_next), remote.next_packet
        )
        found = datagrams.parse_body(header["content"], body, near)
        if found["load"] != NOTHING and self.random.random() < self.drop_received:
            return self.count("dropped on purpose")
        if "feedback" in found:
            self.handle_feedback(remote, found["feedback"])
        if "packet" in found:
            self.note_packet(remote, found["packet"], t)
        if found["load"] in (BEST_EFFORT, RELIABLE, DEADLINE, DEADLINE_ALONE):
            self.handle_sample(remote, found)
        elif "samples" in found:
            for sample in found["samples"]:
                self.handle_sample(remote, sample)
        elif found["load"] == FLOW and found["is_question"]:
            self.send_limit(remote, found["writer"])
        if is_long and not remote.is_mine_known:
            self.send_on_link(remote, NOTHING, b"")

    def note_packet(self, remote, packet, t):
        is_in_order = packet == remote.newest + 1
        remote.arrived.add(packet)
        if packet > remote.newest:
            remote.newest, remote.newest_at = packet, t
        if not is_in_order:
            remote.owes_feedback_since = 0
        elif remote.owes_feedback_since is None:
            remote.owes_feedback_since = t

    def send_on_link(self, remote, content, load):
        t, piggybacked = self.now(), b""
        if remote.owes_feedback_since is not None:
            before = range(max(0, remote.newest - 63), remote.newest)
            missing = [packet for packet in before if packet not in remote.arrived]
            refused = [packet for packet in remote.refused if remote.newest - packet < 64]
            delay = t - remote.newest_at
            piggybacked = datagrams.feedback(remote.newest, remote.newest_at, delay, missing, refused)
            content |= FEEDBACK
            remote.owes_feedback_since = None
        if content and remote.yours and remote.is_mine_known and t - remote.long_sent_at < SECOND:
            header = datagrams.short_header(content, remote.yours)
        else:
            remote.long_sent_at = t
            session = self.session(remote)
            header = datagrams.long_header(content, remote.mine, remote.yours, session, t, remote.next_packet)
        self.send(header + piggybacked + load, remote)

    # ------------------------------------------------------------------------------------ samples received

    def handle_sample(self, remote, found):
        writers = {e["number"]: e for e in remote.endpoints() if not e["is_reader"]}
        if found["writer"] not in writers:
            remote.refused.add(found.get("packet"))
            remote.refused.discard(None)
            return self.count("of an unknown writer")
        is_reliable = found["load"] == RELIABLE
        stream = remote.streams.setdefault(found["writer"], Stream(found.get("lowest")))
        place = found["position"] if is_reliable else found["sequence"]
        if is_reliable:
            stream.next = max(stream.next, found["lowest"])
        if place in stream.waiting or place < (stream.next if is_reliable else stream.newest + 1):
            return self.count("repeated")
        parts = stream.parts.setdefault(place, {})
        parts[found["index"]] = found["fragment"]
        if len(parts) < found["count"]:
            return None
        data = b"".join(part for _, part in sorted(stream.parts.pop(place).items()))
        datagrams.require(found["total"] in (None, len(data)), "length")
        sample = (writers[found["writer"]]["topic"], found["sequence"], found["source"], data)
        if not is_reliable:
            stream.newest = place
            return self.samples.append(sample)
        stream.waiting[place] = sample
        while stream.next in stream.waiting:
            self.samples.append(stream.waiting.pop(stream.next))
            stream.next += 1
        if stream.next + WINDOW >= stream.limit + WINDOW // 4:
            self.send_limit(remote, found["writer"])
        return None

    def send_limit(self, remote, writer):
        stream = remote.streams.get(writer)
        if stream and stream.next is not None:
            stream.limit = stream.next + WINDOW
            self.send_on_link(remote, FLOW << 3, datagrams.varint(writer) + datagrams.varint(stream.limit))

    # ---------------------------------------------------------------------------------------- samples sent

    def publish(self, remote, endpoint, data, old_ns=0):
        """To one node: a sequence number is a position."""
        number, source = endpoint["number"], self.now() - old_ns
        sequence = remote.sent.setdefault(number, {"next": 1, "open": {}})["next"]
        remote.sent[number]["next"] += 1
        count = max(1, -(-len(data) // PART_BYTES))
        size = -(-len(data) // count)
        for index in range(count):
            part = (len(data), index, count) if count > 1 else None
            fragment = data[index * size : (index + 1) * size]
            if endpoint["reliability"] == 2:
                remote.sent[number]["open"].setdefault(sequence, set()).add(index)
                self.send_reliable(remote, {"writer": number, "sequence": sequence, "source": source, "part": part, "fragment": fragment})
            else:
                self.send_on_link(remote, *datagrams.sample(number, sequence, source, fragment, part=part))

    def send_reliable(self, remote, sent):
        behind = sent["sequence"] - min(remote.sent[sent["writer"]]["open"])
        numbers = (remote.next_packet, behind, 0)
        content, load = datagrams.sample(
            sent["writer"], sent["sequence"], sent["source"], sent["fragment"], numbers, sent["part"]
        )
        remote.in_flight[remote.next_packet] = sent | {"at": self.now()}
        if self.random.random() < self.drop_sent:
            self.count("not sent on purpose")
        else:
            self.send_on_link(remote, content, load)
        remote.next_packet += 1

    def retransmit(self, remote, packet):
        self.count("retransmitted")
        self.send_reliable(remote, remote.in_flight.pop(packet))

    def handle_feedback(self, remote, found):
        for packet in list(remote.in_flight):
            if packet in found["missing"]:
                self.retransmit(remote, packet)
            elif found["newest"] - 63 <= packet <= found["newest"] and packet not in found["refused"]:
                sent = remote.in_flight.pop(packet)
                unacknowledged = remote.sent[sent["writer"]]["open"]
                parts = unacknowledged[sent["sequence"]]
                parts.discard(sent["part"][1] if sent["part"] else 0)
                if not parts:
                    unacknowledged.pop(sent["sequence"])
