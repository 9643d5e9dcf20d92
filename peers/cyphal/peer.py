#!/usr/bin/env python3
"""OpenCyphal (UAVCAN v1) over UDP under test, by the reference implementation in Python, pycyphal.

A topic is a subject-ID and a subject-ID a multicast group: publishers need no reader's address. The transport is used without the
application layer, whose serialization of one array of bytes would add nothing but its own cost. Cyphal/UDP neither repairs nor
acknowledges.

asyncio and the interpreter are the larger part of each figure; what the interpreter costs by itself shows the peer `example`. For a
microcontroller there is libudpard in C.

There is no discovery of readers: before `ready` the writer calls on a subject of its own until every reader has answered on
another.

Option: mtu=N (bytes of payload of a frame; 1,408 unless said, what fits an Ethernet frame).
"""

import asyncio
import os
import pathlib
import sys
import time
import zlib

HERE = pathlib.Path(__file__).resolve().parent
ENVIRONMENT = HERE / "build"  # of its own: what pycyphal wants of numpy is its own affair
if pathlib.Path(sys.prefix) != ENVIRONMENT and (ENVIRONMENT / "bin/python").exists():
    os.execv(ENVIRONMENT / "bin/python", [str(ENVIRONMENT / "bin/python"), __file__, *sys.argv[1:]])

sys.path.insert(0, str(HERE.parent / "harness"))
import noctule_peer
import pycyphal
from pycyphal.transport import MessageDataSpecifier, PayloadMetadata, Priority, Timestamp, Transfer
from pycyphal.transport import InputSessionSpecifier, OutputSessionSpecifier
from pycyphal.transport.udp import UDPTransport

MATCH_TIMEOUT_S = 10
CALL_S = 0.005
SEND_TIMEOUT_S = 1
SUBJECTS = 8192  # subject-IDs of Cyphal
KINDS = ("data", "call", "answer")
TOPICS_MAX = 256
PAYLOAD_BYTES_MAX = 4 << 20

DESCRIPTION = {
    "name": "cyphal",
    "version": pycyphal.__version__,
    "links": "udp",
    "waits": "block",
    "modes": "round_trip,one_way,chain,fan_out",
    "formats": "raw",
    "max_payload_bytes": PAYLOAD_BYTES_MAX,
}


class Cyphal:
    """The endpoints of one node."""

    def __init__(self, opened):
        self.address = ""
        self.session = opened["session"]
        self.publish = opened.get("publish") if opened["role"] != "sink" else None
        self.subscribe = opened.get("subscribe") if opened["role"] != "source" else None
        self.readers = int(opened.get("readers", 0)) if self.publish else 0
        self.mtu = int(opened.get("option.mtu", 1408))
        self.sent = 0
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        self.transport = UDPTransport(opened.get("bind_address", "127.0.0.1"), int(opened["node"]) + 1, mtu=self.mtu)
        self.out = self.output(self.publish, "data")
        self.calls = self.output(self.publish, "call")
        self.answers = self.output(self.subscribe, "answer")
        self.loop.run_until_complete(self.listen_all())

    async def listen_all(self):
        """Sessions that receive look for the running loop."""
        self.input = self.listen(self.subscribe, "data")
        self.heard_calls = self.listen(self.subscribe, "call")
        self.heard_answers = self.listen(self.publish, "answer")

    def subject(self, topic, kind):
        """No two of one session are the same."""
        first = zlib.crc32(self.session.encode()) % (SUBJECTS - TOPICS_MAX * len(KINDS))
        number = int(topic.strip("t"))
        if number >= TOPICS_MAX:
            raise ValueError("topic %s: this peer has subjects for %d topics; use fewer" % (topic, TOPICS_MAX))
        return MessageDataSpecifier(first + number * len(KINDS) + KINDS.index(kind))

    def output(self, topic, kind):
        if topic:
            specifier = OutputSessionSpecifier(self.subject(topic, kind), None)
            return self.transport.get_output_session(specifier, PayloadMetadata(PAYLOAD_BYTES_MAX))

    def listen(self, topic, kind):
        if topic:
            specifier = InputSessionSpecifier(self.subject(topic, kind), None)
            return self.transport.get_input_session(specifier, PayloadMetadata(PAYLOAD_BYTES_MAX))

    def connect(self, _):
        self.loop.run_until_complete(self.match())
        for session in (self.calls, self.answers, self.heard_calls, self.heard_answers):
            if session:
                session.close()
        return {"mtu_bytes": self.mtu, "layer": "transport", "receives": "in a thread per subject, through asyncio"}

    async def match(self):
        seen, written_to = set(), not self.subscribe
        end_s = time.monotonic() + MATCH_TIMEOUT_S
        while len(seen) < self.readers or not written_to:
            if time.monotonic() > end_s:
                raise ValueError("%d of %d readers answered in %d s, and the writer %s: is there multicast?" % (
                    len(seen), self.readers, MATCH_TIMEOUT_S, "did" if written_to else "did not"))
            if self.publish:
                await self.put(self.calls, b"C" if len(seen) >= self.readers else b"P")
                if answer := await self.heard_answers.receive(self.loop.time() + CALL_S):
                    seen.add(answer.source_node_id)
            if self.subscribe and (call := await self.heard_calls.receive(self.loop.time() + CALL_S)):
                written_to = written_to or bytes(call.fragmented_payload[0]) == b"C"
                await self.put(self.answers, b"A")
        for _ in range(3 if self.publish else 0):  # UDP may lose one
            await self.put(self.calls, b"C")

    async def put(self, session, message):
        transfer = Transfer(Timestamp.now(), Priority.NOMINAL, self.sent, [memoryview(message)])
        self.sent += 1
        return await session.send(transfer, self.loop.time() + SEND_TIMEOUT_S)

    def send(self, message):
        if not self.loop.run_until_complete(self.put(self.out, message)):
            raise OSError("a transfer was not sent within %d s" % SEND_TIMEOUT_S)

    def receive(self, timeout_ns):
        transfer = self.loop.run_until_complete(self.input.receive(self.loop.time() + timeout_ns / 1e9))
        return b"".join(transfer.fragmented_payload) if transfer else None

    def close(self):
        self.transport.close()
        self.loop.close()


if __name__ == "__main__":
    noctule_peer.serve(DESCRIPTION, Cyphal)
