"""The node side of the Noctule peer protocol (docs/spec/peer-protocol.md) with Python's standard library.

A peer gives `serve` a class whose objects are the open endpoints of one node:

    Link(opened)             create everything; `opened` holds the words of `open` as strings.
                             `link.address` is where publishers find this node ("" if they need not know)
    link.connect(readers)    returns the settings that shape the result, as a dictionary, when all partners are matched
    link.send(message)       sends bytes
    link.receive(timeout_ns) the next message, or None after timeout_ns (0 = only look)
    link.close()
    link.facts               if it has it: what the node measured by itself while it ran, numbers by name

The harness pins, paces, stamps and records. It is also the shortest complete reading of the protocol, for those who
write a peer in a language that has no harness yet. An interpreter adds microseconds of its own to every message:
measure with the C or Rust harness what is faster than that.
"""

import array
import ctypes
import os
import select
import struct
import sys
from time import monotonic_ns as now_ns
from time import process_time_ns

WARMUP = 1 << 63  # set in the index of messages that are not measured
IDLE_NS = 20_000_000  # after this much silence a receiving node looks at standard input
QUIET_MS = 200  # after this much silence and a `stop` it is done, unless `run` says it
LEAD_NS = 100_000  # the sender spins this long before a scheduled time
MAX_MESSAGES = 1 << 24  # slots of a record: 512 MiB
MAX_LINE_BYTES = 8192
SCHEDULED, SENT, RECEIVED, ARRIVALS = range(4)  # the fields of a slot


class Node:
    """One run of one node: its record and its role."""

    def __init__(self, link, opened, run):
        self.link = link
        self.role = opened["role"]
        self.size = int(opened["payload_bytes"])
        self.spins = opened["wait"] == "spin"
        self.messages = int(run["messages"])
        if not 1 <= self.messages <= MAX_MESSAGES:
            raise ValueError("messages=%d is not between 1 and %d" % (self.messages, MAX_MESSAGES))
        self.run = run
        self.touch_full = run.get("touch") == "full"
        self.slots = array.array("q", bytes(32 * self.messages))
        self.sent = self.received = self.duplicated = self.unexpected = self.overrun = 0
        self.newest = None
        self.last_ns = 0
        self.cpu_start_ns = process_time_ns()

    def number(self, key, otherwise):
        return float(self.run.get(key, otherwise))

    def play(self):
        """Plays the role to its end, writes the record, returns the `done` line."""
        if self.role in ("initiator", "source"):
            self.send_part(WARMUP, int(self.number("warmup_messages", 0)), self.number("warmup_ms", 1e9) * 1e6)
            self.cpu_start_ns = process_time_ns()
            self.send_part(0, self.messages, self.number("seconds", 1e6) * 1e9)
            if self.role == "initiator":
                self.receive_until(lambda: self.received >= self.sent)
        else:
            self.receive_all()
        cpu_ns = process_time_ns() - self.cpu_start_ns
        self.write_record()
        facts = " ".join("fact.%s=%s" % fact for fact in getattr(self.link, "facts", {}).items())
        counts = " ".join("%s=%d" % count for count in self.counts(cpu_ns).items())
        return " ".join(["done", counts, facts]).rstrip()

    def write_record(self):
        with open(self.run["record"], "wb") as record:
            record.write(struct.pack("<8sQ16x", b"NOCTREC1", self.messages) + self.slots.tobytes())

    def counts(self, cpu_ns):
        names = ("sent", "received", "duplicated", "unexpected", "overrun")
        return {name: getattr(self, name) for name in names} | {"cpu_ns": cpu_ns, "recorder_ns": calibrate()}

    def send_part(self, mark, messages, limit_ns):
        """Warm-up (mark = WARMUP) or measurement. With a rate the loop is open: the stamp is the schedule."""
        rate_hz = self.number("rate_hz", 0)
        start_ns = now_ns()
        for i in range(messages):
            due_ns = start_ns + int(i * 1e9 / rate_hz) if rate_hz else now_ns()
            sent_ns = self.wait_until(due_ns, 1e9 / rate_hz) if rate_hz else due_ns
            if sent_ns - start_ns > limit_ns:
                return
            self.send(i | mark, due_ns, sent_ns)
            if self.role == "initiator" and not rate_hz:
                self.receive_until(lambda: self.newest == i | mark)

    def wait_until(self, due_ns, period_ns):
        """Sleeps, or receives, until shortly before the time, and spins for the rest."""
        wake_ns = due_ns - min(LEAD_NS, int(period_ns / 4))
        while (time_ns := now_ns()) < due_ns:
            pause_ns = max(0, wake_ns - time_ns)
            if self.role == "initiator":
                self.receive(0 if self.spins else pause_ns)
            elif pause_ns:
                select.select([], [], [], pause_ns / 1e9)
        return time_ns

    def receive_until(self, complete):
        end_ns = now_ns() + self.number("reply_timeout_ms", 1000) * 1e6
        while not complete() and now_ns() < end_ns:
            self.receive(IDLE_NS)

    def receive_all(self):
        stop, stop_ns = None, 0
        quiet_ns = self.number("quiet_ms", QUIET_MS) * 1e6
        while stop is None or (self.received < stop and now_ns() - max(self.last_ns, stop_ns) < quiet_ns):
            if self.receive(IDLE_NS):
                continue
            command = next_command(wait=False)
            if command and command[0] != "stop":
                sys.exit("the lab went away in the middle of a run")
            if command:
                stop, self.last_ns = int(command[1]["messages"]), now_ns()

    def send(self, index, stamp_ns, sent_ns):
        if index < WARMUP:
            self.slots[4 * index + SCHEDULED] = stamp_ns
            self.slots[4 * index + SENT] = sent_ns
            self.sent += 1
        header = struct.pack("<Qq", index, stamp_ns)
        message = header.ljust(self.size, header[:1] if self.touch_full else b"\0")
        self.link.send(message[:-8] + header[:8] if self.size >= 24 else message)

    def receive(self, timeout_ns):
        """Takes at most one message; false if none came."""
        if not self.spins or not timeout_ns:
            message = self.link.receive(timeout_ns)
        else:
            end_ns = now_ns() + timeout_ns
            while (message := self.link.receive(0)) is None and now_ns() < end_ns:
                pass
        arrived_ns = now_ns()  # immediately after the call that received
        if message is not None:
            self.account(message, arrived_ns)
        return message is not None

    def account(self, message, arrived_ns):
        """Records a message; echo and forwarder send it on."""
        self.last_ns = arrived_ns
        if not self.is_whole(message):
            self.unexpected += 1
            return
        index, stamp_ns = struct.unpack_from("<Qq", message)
        if index >= WARMUP:
            self.newest = index
            if self.role in ("echo", "forwarder"):
                self.send(index, stamp_ns, 0)
            return
        if self.role == "initiator" and index >= self.sent:
            self.unexpected += 1
            return
        if index >= self.messages:
            self.overrun += 1
            return
        self.slots[4 * index + ARRIVALS] += 1
        if self.slots[4 * index + ARRIVALS] > 1:
            self.duplicated += 1
            return
        self.received += 1
        self.newest = index
        if self.role == "echo":  # its stamps are part of no figure: it answers first
            self.send(index, stamp_ns, 0)
            self.slots[4 * index + SENT] = arrived_ns = now_ns()
        self.slots[4 * index + SCHEDULED] = stamp_ns
        self.slots[4 * index + RECEIVED] = arrived_ns
        if self.role == "forwarder":
            self.send(index, stamp_ns, now_ns())

    def is_whole(self, message):
        if len(message) != self.size or (self.size >= 24 and message[-8:] != message[:8]):
            return False
        return not self.touch_full or message[16:-8] == message[:1] * (self.size - 24)


def calibrate():
    """Cost of one stamp, in nanoseconds."""
    stamps, start_ns = array.array("q", bytes(8)), now_ns()
    for _ in range(1000):
        stamps[0] = now_ns()
    return (now_ns() - start_ns) // 1000


# Unbuffered: what has been read ahead would be hidden from select.
LAB = open(0, "rb", buffering=0, closefd=False)


def next_command(wait=True):
    """(verb, words); None if nothing is there and wait is false. End of file reads as close."""
    if not wait and not select.select([LAB], [], [], 0)[0]:
        return None
    line = LAB.readline(MAX_LINE_BYTES + 1)
    while len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
        line = b"too-long\n" if LAB.readline(MAX_LINE_BYTES).endswith(b"\n") else line
    verb, *words = line.decode(errors="replace").split() or ["" if line else "close"]
    pairs = (word.partition("=") for word in words)
    return verb, {key: value.replace("%20", " ").replace("%25", "%") for key, _, value in pairs}


def place(opened):
    """Puts the process where the lab wants it, before anything is created."""
    if "core" in opened:
        os.sched_setaffinity(0, {int(opened["core"])})
    if opened.get("priority", "0") != "0":
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(int(opened["priority"])))
    if opened.get("lock_memory") == "1" and ctypes.CDLL(None, use_errno=True).mlockall(3) != 0:
        raise OSError("mlockall was refused: run as root or raise the memlock limit")


def check(opened, description):
    """A peer refuses what it does not offer."""
    for key, offer in (("link", "links"), ("wait", "waits"), ("format", "formats")):
        word = opened.get(key, "raw") if key == "format" else opened[key]
        if word not in description[offer].split(","):
            raise ValueError("%s=%s is not offered: use one of %s" % (key, word, description[offer]))
    if opened["role"] not in ("initiator", "echo", "source", "forwarder", "sink"):
        raise ValueError("role=%s is unknown" % opened["role"])
    if not 16 <= int(opened["payload_bytes"]) <= int(description["max_payload_bytes"]):
        raise ValueError("payload_bytes=%(payload_bytes)s is not what this peer carries" % opened)


# Where replies go from serve() on.
replies = sys.stdout


def escape(value):
    return str(value).replace("%", "%25").replace(" ", "%20")


def obey(verb, words, description, open_link, state):
    """Does what one line asks; returns the reply."""
    if verb == "hello":
        if words["protocol"] != "1":
            raise ValueError("this peer speaks protocol 1, not %s" % words["protocol"])
        return "hello " + " ".join("%s=%s" % (key, escape(value)) for key, value in description.items())
    if verb == "open":
        if "open" in state:
            raise ValueError("this peer is open already: close it first")
        check(words, description)
        place(words)
        state["open"], state["link"] = words, open_link(words)
        return "opened address=" + escape(state["link"].address) if state["link"].address else "opened"
    if verb == "connect":
        if "open" not in state:
            raise ValueError("connect comes after open")
        settings = state["link"].connect([reader for reader in words.get("readers", "").split(",") if reader])
        state["connected"] = True
        return " ".join(["ready"] + ["setting.%s=%s" % (key, escape(value)) for key, value in settings.items()])
    if verb == "run":
        if "connected" not in state:
            raise ValueError("run comes after connect")
        node = state["node"](state["link"], state["open"], words)
        replies.write("running\n")
        return node.play()
    raise ValueError("%s is unknown: hello, open, connect, run, stop and close are understood" % verb)


def serve(description, open_link, node=Node):
    """Speaks the protocol until close. `description` holds the words of `hello`."""
    global replies
    # Descriptor 1 is turned to standard error, for middlewares that talk.
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    state = {"node": node}
    while (command := next_command())[0] != "close":
        try:
            reply = obey(*command, description, open_link, state)
        except KeyError as missing:
            reply = "error %s needs %s=" % (command[0], missing.args[0])
        except (OSError, ValueError, MemoryError) as problem:
            reply = "error " + str(problem).replace("\n", " ")
        if command[0] != "stop":
            replies.write(reply + "\n")
    if "link" in state:
        state["link"].close()
