#!/usr/bin/env python3
"""The example peer with a fault chosen by `option.fault`, for the tests of the lab's judgement.

fault      what the faulty node does                                             faulty roles
stall      stops for option.stall_ms (100) at message option.at                  echo, forwarder, sink
slow       is busy for option.slow_us (20) before it handles each message        echo, forwarder, sink
lie        claims in `done` one message more than it received                    echo, forwarder, sink
crash      exits with status 3 at message option.at                              echo, forwarder, sink
hang       never says `done`                                                     echo, forwarder, sink
garbage    prints bytes that are no line of the protocol at message option.at    echo, forwarder, sink
negative   records that message option.at arrived 1 µs before it was sent        initiator, sink
drop       does not send every option.every-th (10th) message it says it sent    source, echo, forwarder
duplicate  sends every option.every-th message twice                             source, echo, forwarder

option.at is 100 unless given; option.role makes another role the faulty one.
"""

import os
import pathlib
import select
import signal
import sys

PEERS = pathlib.Path(__file__).resolve().parents[5] / "peers"
sys.path[:0] = [str(PEERS / "harness"), str(PEERS / "example")]
import noctule_peer
import peer

RECEIVERS, SENDERS = ("echo", "forwarder", "sink"), ("source", "echo", "forwarder")
FAULTS = dict.fromkeys(("stall", "slow", "lie", "crash", "hang", "garbage"), RECEIVERS)
FAULTS |= {"negative": ("initiator", "sink"), "drop": SENDERS, "duplicate": SENDERS}


class FaultyNode(noctule_peer.Node):
    def __init__(self, link, opened, run):
        super().__init__(link, opened, run)
        self.options = {key[7:]: value for key, value in opened.items() if key.startswith("option.")}
        fault = self.options.get("fault", "none")
        if fault not in FAULTS and fault != "none":
            raise ValueError("option.fault=%s is unknown: use one of %s" % (fault, ", ".join(FAULTS)))
        roles = (self.options["role"],) if "role" in self.options else FAULTS.get(fault, ())
        self.fault = fault if self.role in roles else "none"
        self.at = int(self.options.get("at", 100))
        self.every = int(self.options.get("every", 10))

    def account(self, message, arrived_ns):
        here = int.from_bytes(message[:8], "little") == self.at
        if self.fault == "stall" and here:
            select.select([], [], [], float(self.options.get("stall_ms", 100)) / 1e3)
        if self.fault == "slow":
            end_ns = arrived_ns + float(self.options.get("slow_us", 20)) * 1e3
            while noctule_peer.now_ns() < end_ns:
                pass
        if self.fault == "crash" and here:
            os._exit(3)
        if self.fault == "garbage" and here:
            noctule_peer.replies.buffer.write(bytes(range(128, 256)) + b"\0\xff\n" + b"done sent=many\n")
            noctule_peer.replies.buffer.flush()
        super().account(message, arrived_ns)

    def send(self, index, stamp_ns, sent_ns):
        chosen = index < noctule_peer.WARMUP and index % self.every == self.every - 1
        if self.fault == "drop" and chosen:
            link, self.link = self.link, Nowhere()
            super().send(index, stamp_ns, sent_ns)
            self.link = link
            return
        super().send(index, stamp_ns, sent_ns)
        if self.fault == "duplicate" and chosen:
            super().send(index, stamp_ns, sent_ns)
            self.sent -= 1

    def counts(self, cpu_ns):
        counts = super().counts(cpu_ns)
        if self.fault == "lie":
            counts["received"] += 1
        return counts

    def play(self):
        if self.fault == "negative":
            return self.play_negative()
        done = super().play()
        while self.fault == "hang":
            signal.pause()
        return done

    def play_negative(self):
        """Plays, then writes the record once more with the impossible stamp."""
        done = super().play()
        slot = 4 * min(self.at, self.messages - 1)
        self.slots[slot + noctule_peer.RECEIVED] = self.slots[slot + noctule_peer.SCHEDULED] - 1000
        self.write_record()
        return done


class Nowhere:
    """A link that loses everything."""

    def send(self, message):
        pass


if __name__ == "__main__":
    noctule_peer.serve(dict(peer.DESCRIPTION, name="faulty"), peer.Udp, FaultyNode)
