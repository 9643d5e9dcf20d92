#!/usr/bin/env python3
"""The peer `formats_python`: what `formats_rust` does, with the packages a Python program would use.

A frame on the stream: length of the encoding (u32), 1 if the body of the lab's message counts (u32), when it was sent
(i64), then the encoding; little-endian.
"""

import os
import pathlib
import platform
import select
import socket
import statistics
import struct
import sys
from time import monotonic_ns as now_ns

HERE = pathlib.Path(__file__).resolve().parent
ENVIRONMENT = HERE.parent.parent / ".venv"  # where `cargo xtask setup` installs the packages
if ENVIRONMENT.is_dir() and pathlib.Path(sys.prefix) != ENVIRONMENT and (ENVIRONMENT / "bin/python").exists():
    os.execv(ENVIRONMENT / "bin/python", [str(ENVIRONMENT / "bin/python"), __file__, *sys.argv[1:]])

sys.path[:0] = [str(HERE), str(HERE.parent / "harness")]
import codecs_of
import noctule_peer
import state as states

FRAME = struct.Struct("<IIq")
FRAME_BYTES_MAX = 256 << 20
SEED = 1
WARMUP_SEQUENCE = 1 << 62  # BSON has no place for numbers from 2**63
STAMPS_MAX = 1 << 16
CODECS = codecs_of.codecs()

DESCRIPTION = {
    "name": "formats_python",
    "version": platform.python_version(),
    "links": "tcp",
    "waits": "block",
    "modes": "round_trip,one_way,chain",
    "formats": ",".join(CODECS),
    "max_payload_bytes": 4 << 20,
}


class Link:
    """The endpoints of one node: a listener, one stream in, one stream out."""

    def __init__(self, opened):
        self.size = int(opened["payload_bytes"])
        if self.size < 1000:
            raise ValueError("payload_bytes=%d is less than the message has: ask for at least 1000" % self.size)
        self.encode, self.decode, self.package = CODECS[opened["format"]]
        self.state = states.realistic(self.size, SEED)
        self.encode_ns, self.transfer_ns, self.decode_ns, self.encoded_bytes = [], [], [], 0
        self.inbound, self.outbound, self.buffer = None, [], bytearray()
        self.listener, self.address = None, ""
        if opened.get("subscribe"):
            self.listener = socket.create_server((opened.get("bind_address", "127.0.0.1"), 0))
            self.address = "%s:%d" % self.listener.getsockname()

    def connect(self, readers):
        for reader in readers:
            host, port = reader.rsplit(":", 1)
            stream = socket.create_connection((host, int(port)), timeout=10)
            stream.settimeout(None)
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.outbound.append(stream)
        if self.listener:
            if not select.select([self.listener], [], [], 10)[0]:
                raise OSError("no writer has connected within 10 s")
            self.inbound = self.listener.accept()[0]
        return {"nodelay": 1, "package": self.package}

    def send(self, message):
        index, stamp_ns = struct.unpack_from("<Qq", message)
        warm_up = index >= noctule_peer.WARMUP
        header = self.state["header"]
        header["sequence"] = index - noctule_peer.WARMUP + WARMUP_SEQUENCE if warm_up else index
        header["stamp_ns"] = stamp_ns
        start_ns = now_ns()
        encoded = self.encode(self.state)
        sent_ns = now_ns()
        self.keep(warm_up, self.encode_ns, sent_ns - start_ns)
        self.encoded_bytes = len(encoded)
        for stream in self.outbound:
            stream.sendall(FRAME.pack(len(encoded), message[16] != 0, sent_ns) + encoded)

    def receive(self, timeout_ns):
        end_ns = now_ns() + timeout_ns
        while (encoded := self.complete()) is None:
            # A message that has begun is received to its end.
            wait = 10 if self.buffer else max(0, end_ns - now_ns()) / 1e9
            if not select.select([self.inbound], [], [], wait)[0]:
                return None
            part = self.inbound.recv(1 << 20)
            if not part:
                raise OSError("the writer closed the connection")
            self.buffer += part
        return encoded

    def complete(self):
        """The next message of the lab, made of what was decoded; None if its frame is not all there."""
        if len(self.buffer) < FRAME.size:
            return None
        length, full, sent_ns = FRAME.unpack_from(self.buffer)
        if length > FRAME_BYTES_MAX:
            raise OSError("a frame of %d bytes arrived; no message is so long" % length)
        if len(self.buffer) < FRAME.size + length:
            return None
        arrived_ns = now_ns()
        encoded = bytes(self.buffer[FRAME.size : FRAME.size + length])
        del self.buffer[: FRAME.size + length]
        start_ns = now_ns()
        header = self.decode(encoded)["header"]
        decode_ns = now_ns() - start_ns
        index = header["sequence"]
        warm_up = index >= WARMUP_SEQUENCE
        self.keep(warm_up, self.transfer_ns, arrived_ns - sent_ns)
        self.keep(warm_up, self.decode_ns, decode_ns)
        index = index - WARMUP_SEQUENCE + noctule_peer.WARMUP if warm_up else index
        start = struct.pack("<Qq", index, header["stamp_ns"])
        return start.ljust(self.size - 8, start[:1] if full else b"\0") + start[:8]

    def keep(self, warm_up, stamps, ns):
        if not warm_up and len(stamps) < STAMPS_MAX:
            stamps.append(ns)

    @property
    def facts(self):
        medians = {"encode_ns": self.encode_ns, "transfer_ns": self.transfer_ns, "decode_ns": self.decode_ns}
        facts = {name: statistics.median(stamps) for name, stamps in medians.items() if stamps}
        return facts | {"encoded_bytes": self.encoded_bytes}

    def close(self):
        for stream in (self.listener, self.inbound, *self.outbound):
            if stream:
                stream.close()


if __name__ == "__main__":
    noctule_peer.serve(DESCRIPTION, Link)
