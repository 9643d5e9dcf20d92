"""A reader of a ring in shared memory, as docs/spec/shared-memory.md describes it. Written from that page alone."""

import array
import fcntl
import mmap
import os
import random
import socket
import struct

GET_SEALS, SEAL, SHRINK, GROW, FUTURE_WRITE = 1034, 1, 2, 4, 16
ASK, GRANT, REFUSE, RELEASE, END = range(1, 6)
HEADER_BYTES, PUBLISHED, SLOTS = 64, 128, 256
OPEN, SKIPPED = 1, 2


class Ring:
    def __init__(self, descriptor):
        seals = SEAL | SHRINK | GROW | FUTURE_WRITE
        assert fcntl.fcntl(descriptor, GET_SEALS) & seals == seals
        size = os.fstat(descriptor).st_size
        self.memory = mmap.mmap(descriptor, size, mmap.MAP_SHARED, mmap.PROT_READ)
        version, self.slots, self.stride, self.payload_max, self.type_hash, self.pins, self.shift = struct.unpack_from(
            "=7Q", self.memory, 8
        )
        assert self.memory[:8] == b"noctring" and version == 2
        assert 2 <= self.slots <= 65536 and self.slots & self.slots - 1 == 0 and self.shift in (0, 4)
        longest = self.payload_max + self.shift
        assert self.stride == (64 if longest <= 32 else -(-(64 + longest) // 128) * 128)
        assert size >= SLOTS + self.slots * self.stride

    def word(self, offset):
        return struct.unpack_from("=Q", self.memory, offset)[0]

    def published(self):
        return self.word(PUBLISHED)

    def oldest(self):
        return max(1, self.published() - (self.slots - 2 - self.pins))

    def read(self, position):
        """(number, source time, user's word, bytes) of a complete message, else None."""
        slot = SLOTS + position % self.slots * self.stride
        if self.word(slot) != position * 4:
            return None
        number, source, lengths = struct.unpack_from("=QqQ", self.memory, slot + 8)
        length, user = lengths % 2**32, lengths >> 32
        start = slot + self.shift + (32 if length + self.shift <= 32 else 64)
        payload = self.memory[start : start + length]
        return (number, source, user, payload) if self.word(slot) == position * 4 else None


def packet(kind, flags, node, writer_node, writer, reader, borrows=0, rest=b""):
    head = b"NCTR" + struct.pack("<BBBB", 4, kind, flags, 0)
    return head + node + writer_node + struct.pack("<III", writer, reader, borrows) + rest


def ask(node, writer_node, writer, reader, wants_history):
    """The connection, the ring, the position from which on the writer knows this reader; `None` if it refuses."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect("\0noctule/" + writer_node.hex())
    number = struct.pack("<Q", random.getrandbits(64))
    connection.send(packet(ASK, int(wants_history), node, writer_node, writer, reader, 1, number + bytes(32)))
    answer, ancillary, _, _ = connection.recvmsg(512, socket.CMSG_SPACE(8))
    assert answer[:5] == b"NCTR\4" and answer[5] in (GRANT, REFUSE), answer
    if answer[5] == REFUSE:
        return None
    descriptors = array.array("i", ancillary[0][2])
    return connection, Ring(descriptors[0]), struct.unpack_from("<Q", answer, 52)[0]
