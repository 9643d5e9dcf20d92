#!/usr/bin/env python3
"""eCAL under test through its Python package: shared memory, UDP or TCP.

PyPI's wheel brings libecal_core but no headers, so this peer is Python: a callback in eCAL's own thread takes the
interpreter's lock and hands each message to the node's loop. What the interpreter costs by itself shows the peer `example`.

eCAL chooses between its layers; here only the cell's is on. Partners find each other by eCAL's registrations, once a second.
In shared memory and over TCP a reader that is slower than the writer gets the newest message; with ack_timeout_ms the writer waits
for every reader of shared memory, at most so long.

Options: ack_timeout_ms=N (0, eCAL's default), buffers=N (memory files of a writer; 1, eCAL's default).
"""

import os
import pathlib
import queue
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ENVIRONMENT = HERE / "build"  # of its own: eCAL's package wants an older protobuf than the formats' peer
if pathlib.Path(sys.prefix) != ENVIRONMENT and (ENVIRONMENT / "bin/python").exists():
    os.execv(ENVIRONMENT / "bin/python", [str(ENVIRONMENT / "bin/python"), __file__, *sys.argv[1:]])

sys.path.insert(0, str(HERE.parent / "harness"))
import ecal.nanobind_core as ecal
import noctule_peer

MATCH_TIMEOUT_S = 10
LAYERS = ("shm", "udp", "tcp")

DESCRIPTION = {
    "name": "ecal",
    "version": ecal.get_version_string().removeprefix("v"),
    "links": ",".join(LAYERS),
    "waits": "block",
    "modes": "round_trip,one_way,chain,fan_out",
    "formats": "raw",
    "max_payload_bytes": 16 << 20,
}


class Ecal:
    """The endpoints of one node."""

    def __init__(self, opened):
        self.address = ""
        self.arrived = queue.SimpleQueue()
        self.partners_changed = threading.Event()
        self.readers = int(opened.get("readers", 0)) if "publish" in opened else 0
        config = ecal.init.get_configuration()
        for layer in LAYERS:
            getattr(config.publisher.layer, layer).enable = layer == opened["link"]
            getattr(config.subscriber.layer, layer).enable = layer == opened["link"]
        shm = config.publisher.layer.shm
        shm.acknowledge_timeout_ms = int(opened.get("option.ack_timeout_ms", 0))
        shm.memfile_buffer_count = int(opened.get("option.buffers", 1))
        self.settings = {"layer": opened["link"], "receives": "in a callback of eCAL's thread"}
        if opened["link"] == "shm":
            self.settings |= {"ack_timeout_ms": shm.acknowledge_timeout_ms, "buffers": shm.memfile_buffer_count}
        if not ecal.initialize(config, "%s-%s" % (opened["session"], opened["node"])):
            raise ValueError("eCAL does not start: is another network stack in the way?")
        self.publisher = self.subscriber = None
        if "publish" in opened:
            # Named: the default of the argument is what was configured when the package was loaded.
            topic = "%s/%s" % (opened["session"], opened["publish"])
            self.publisher = ecal.Publisher(topic, config=config.publisher, event_callback=self.on_event)
        if "subscribe" in opened and opened["role"] != "source":
            topic = "%s/%s" % (opened["session"], opened["subscribe"])
            self.subscriber = ecal.Subscriber(topic, config=config.subscriber, event_callback=self.on_event)
            self.subscriber.set_receive_callback(lambda publisher, kind, data: self.arrived.put(data.buffer))

    def on_event(self, *_):
        self.partners_changed.set()

    def connect(self, _):
        end_s = time.monotonic() + MATCH_TIMEOUT_S
        while True:
            self.partners_changed.clear()
            if self.matched():
                return self.settings
            if not self.partners_changed.wait(max(0, end_s - time.monotonic())):
                raise ValueError("not every partner was registered in %d s: does UDP reach them?" % MATCH_TIMEOUT_S)

    def matched(self):
        readers = self.publisher.get_subscriber_count() if self.publisher else 0
        return readers >= self.readers and (not self.subscriber or self.subscriber.get_publisher_count() > 0)

    def send(self, message):
        if not self.publisher.send(message):
            raise OSError("eCAL did not send: it has no reader")

    def receive(self, timeout_ns):
        try:
            return self.arrived.get(timeout=timeout_ns / 1e9) if timeout_ns else self.arrived.get_nowait()
        except queue.Empty:
            return None

    def close(self):
        self.publisher = self.subscriber = None
        ecal.finalize()


if __name__ == "__main__":
    noctule_peer.serve(DESCRIPTION, Ecal)
