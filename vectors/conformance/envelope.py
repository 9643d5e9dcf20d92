"""The seal of docs/spec/envelope.md: its keys, its handshake, its datagrams. Written from that page alone."""

import hashlib
import hmac
import struct

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

ALL, CHALLENGE, ANSWER, GROUP, ONE = range(5)
NOISE_NAME = b"Noise_IXpsk0_25519_AESGCM_SHA256"


def keyed(key, data):
    return hmac.new(key, data, hashlib.sha256).digest()


def derived(key, *info):
    """X[info]: HKDF-Expand to 32 bytes."""
    return keyed(key, b"".join(info) + b"\1")


def swarm_secret(swarm_key):
    """W."""
    return keyed(b"noctule swarm 2", swarm_key)


def after_generations(secret, count):
    for _ in range(count):
        secret = derived(secret, b"next")
    return secret


def number_of_pair(pair):
    return struct.unpack("<Q", derived(pair, b"id")[:8])[0] or 1


def node_number(public_key):
    return hashlib.sha256(public_key).digest()[:16]


def nonce(counter):
    return struct.pack("<Q", counter) + bytes(4)


def seal(kind, epoch, node, counter, key, body):
    head = b"NCTX" + struct.pack("<BBH16sQ", 2, kind, epoch, node, counter)
    return head + AESGCM(key).encrypt(nonce(counter), body, head)


def open_sealed(data, key):
    (counter,) = struct.unpack_from("<Q", data, 24)
    return AESGCM(key).decrypt(nonce(counter), data[32:], data[:32])


def seal_short(header, counter, key, sender, receiver, body):
    head = header + (counter % 2**24).to_bytes(3, "little")
    return head + AESGCM(key).encrypt(nonce(counter), body, head + sender + receiver)


def open_short(data, counter, key, sender, receiver):
    return AESGCM(key).decrypt(nonce(counter), data[6:], data[:6] + sender + receiver)


class Handshake:
    """Noise IXpsk0 (revision 34, sections 5 and 9), its challenger or its responder."""

    def __init__(self, challenger, challenged, secret, static, ephemeral=None):
        self.static, self.ephemeral = static, ephemeral or X25519PrivateKey.generate()
        self.pre_shared = secret
        self.hash = self.chaining = NOISE_NAME
        self.key, self.count = None, 0
        self.mix_hash(b"noctule envelope 2" + challenger + challenged)

    def mix_hash(self, data):
        self.hash = hashlib.sha256(self.hash + data).digest()

    def outputs(self, secret, count):
        key, out, last = keyed(self.chaining, secret), [], b""
        for number in range(1, count + 1):
            last = keyed(key, last + bytes([number]))
            out.append(last)
        return out

    def mix_key(self, secret):
        self.chaining, self.key = self.outputs(secret, 2)
        self.count = 0

    def mix_pre_shared(self):
        self.chaining, for_hash, self.key = self.outputs(self.pre_shared, 3)
        self.mix_hash(for_hash)
        self.count = 0

    def mix_agreement(self, private, public):
        self.mix_key(private.exchange(X25519PublicKey.from_public_bytes(public)))

    def mix_ephemeral(self, public):
        self.mix_hash(public)
        self.mix_key(public)

    def next_nonce(self):
        self.count += 1
        return bytes(4) + struct.pack(">Q", self.count - 1)

    def encrypt(self, data):
        sealed = AESGCM(self.key).encrypt(self.next_nonce(), data, self.hash)
        self.mix_hash(sealed)
        return sealed

    def decrypt(self, sealed):
        data = AESGCM(self.key).decrypt(self.next_nonce(), sealed, self.hash)
        self.mix_hash(sealed)
        return data

    def write_challenge(self, payload):
        public = self.ephemeral.public_key().public_bytes_raw()
        self.mix_pre_shared()
        self.mix_ephemeral(public)
        return public + self.encrypt(self.static.public_key().public_bytes_raw()) + self.encrypt(payload)

    def read_challenge(self, message):
        self.mix_pre_shared()
        self.their_ephemeral = message[:32]
        self.mix_ephemeral(self.their_ephemeral)
        self.their_static = self.decrypt(message[32:80])
        return self.decrypt(message[80:])

    def write_answer(self, payload):
        public = self.ephemeral.public_key().public_bytes_raw()
        self.mix_ephemeral(public)
        self.mix_agreement(self.ephemeral, self.their_ephemeral)
        self.mix_agreement(self.ephemeral, self.their_static)
        static = self.encrypt(self.static.public_key().public_bytes_raw())
        self.mix_agreement(self.static, self.their_ephemeral)
        return public + static + self.encrypt(payload)

    def read_answer(self, message):
        self.their_ephemeral = message[:32]
        self.mix_ephemeral(self.their_ephemeral)
        self.mix_agreement(self.ephemeral, self.their_ephemeral)
        self.mix_agreement(self.static, self.their_ephemeral)
        self.their_static = self.decrypt(message[32:80])
        self.mix_agreement(self.ephemeral, self.their_static)
        return self.decrypt(message[80:])

    def pair(self):
        """P, of the second key of Split."""
        return derived(self.outputs(b"", 2)[1], b"pair")
