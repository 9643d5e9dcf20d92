#!/usr/bin/env python3
"""An example peer: UDP. Copy this folder, put your middleware in place of UDP, and the lab measures it.

docs/guide/add-a-peer.md goes through it line by line.
"""

import pathlib
import platform
import select
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
import noctule_peer

RECEIVE_BUFFER_BYTES = 4 << 20

DESCRIPTION = {
    "name": "example",
    "version": platform.python_version(),
    "links": "udp",
    "waits": "spin,block",
    "modes": "round_trip,one_way,chain,fan_out",
    "formats": "raw",
    "max_payload_bytes": 65507,
}


class Udp:
    """The endpoints of one node: one socket that receives and sends."""

    def __init__(self, opened):
        self.readers = []
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        self.socket.bind((opened.get("bind_address", "127.0.0.1"), 0))
        self.address = "%s:%d" % self.socket.getsockname()

    def connect(self, readers):
        for reader in readers:
            host, port = reader.rsplit(":", 1)
            self.readers.append((host, int(port)))
        return {"receive_buffer_bytes": self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)}

    def send(self, message):
        for reader in self.readers:
            self.socket.sendto(message, reader)

    def receive(self, timeout_ns):
        if timeout_ns and not select.select([self.socket], [], [], timeout_ns / 1e9)[0]:
            return None
        try:
            return self.socket.recv(65536, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None

    def close(self):
        self.socket.close()


if __name__ == "__main__":
    noctule_peer.serve(DESCRIPTION, Udp)
