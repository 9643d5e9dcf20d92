#!/usr/bin/env python3
"""Does a program speak the peer protocol (docs/spec/peer-protocol.md)? Plays the lab by hand and checks every count.

    peers/conformance.py [--link L] [--wait W] [--payload N] [--cores 0,1] [--option K=V] … PROGRAM [-- ARGUMENT…]

Runs round trip (closed and open loop), one way (at a rate and back to back), a chain of three and a fan-out to two on
every link and wait the program offers, then tells it nonsense. Nothing depends on how fast the program is; the
latencies printed are for orientation. Exit status 0: conforms; 1: does not, and the reasons were printed.
"""

import argparse
import itertools
import os
import select
import struct
import subprocess
import sys
import tempfile
import threading

REPLY_LIMIT_S = 60  # a program that says nothing for so long hangs
RECORD_BYTES = 32
HELLO_KEYS = ("name", "version", "links", "waits", "modes", "formats", "max_payload_bytes")
DONE_KEYS = ("sent", "received", "duplicated", "unexpected", "overrun", "cpu_ns", "recorder_ns")


class Nonconforming(Exception):
    """A program's deviation from the protocol, in a sentence."""


def require(fact, sentence, *values):
    if not fact:
        raise Nonconforming(sentence % values)


class Program:
    """One process under test and its two pipes."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.buffered = b""
        self.complaints = []
        self.listener = threading.Thread(target=self._listen, daemon=True)
        self.listener.start()

    def _listen(self):
        for line in self.process.stderr:
            self.complaints.append(line.decode(errors="replace").rstrip())

    def say(self, line):
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Nonconforming("the program ended before %.60r; it said: %s" % (line, self.complaints[-3:])) from None

    def reply(self):
        """The next line, split into verb and words."""
        while b"\n" not in self.buffered:
            ready = select.select([self.process.stdout], [], [], REPLY_LIMIT_S)[0]
            require(ready, "no reply for %d s; standard error: %s", REPLY_LIMIT_S, self.complaints[-3:])
            chunk = os.read(self.process.stdout.fileno(), 65536)
            require(chunk, "the program ended instead of replying; standard error: %s", self.complaints[-3:])
            self.buffered += chunk
            require(len(self.buffered) < 1 << 20, "a reply without end")
        raw, self.buffered = self.buffered.split(b"\n", 1)
        require(len(raw) <= 8192, "a reply of %d bytes; the longest is 8192", len(raw))
        try:
            verb, _, rest = raw.decode().partition(" ")
        except UnicodeDecodeError:
            raise Nonconforming("a reply that is not UTF-8: %r" % raw[:60]) from None
        if verb == "error":
            require(len(rest) > 5, "an error without a sentence")
            return verb, rest
        words = {}
        for word in rest.split(" ") if rest else []:
            key, equals, value = word.partition("=")
            require(equals, "the word %r of the reply %r is not key=value", word, verb)
            words[key] = value.replace("%20", " ").replace("%25", "%")
        return verb, words

    def expect(self, wanted):
        verb, words = self.reply()
        require(verb == wanted, "%r where %r was expected: %s", verb, wanted, words)
        return words

    def ask(self, line, wanted):
        self.say(line)
        return self.expect(wanted)

    def end(self, by_end_of_file=False):
        """Closes it; nothing more may be said, and the exit status is 0."""
        if not by_end_of_file:
            self.say("close")
        else:
            self.process.stdin.close()
        try:
            self.process.wait(REPLY_LIMIT_S)
        except subprocess.TimeoutExpired:
            raise Nonconforming("it does not end after close") from None
        rest = self.buffered + self.process.stdout.read()
        require(not rest, "unasked output: %r", rest[:80])
        require(self.process.returncode == 0, "exit status %d after close; standard error: %s", self.process.returncode,
                self.complaints[-3:])

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.listener.join(5)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                stream.close()
            except BrokenPipeError:
                pass


def topology(mode, nodes):
    """(role, topic to publish, number of its readers, topic to subscribe to) of each node."""
    if mode == "round_trip":
        return [("initiator", "t0", 1, "t1"), ("echo", "t1", 1, "t0")]
    if mode == "fan_out":
        return [("source", "t0", nodes - 1, None)] + [("sink", None, 0, "t0")] * (nodes - 1)
    middle = [("forwarder", "t%d" % i, 1, "t%d" % (i - 1)) for i in range(1, nodes - 1)]
    return [("source", "t0", 1, None), *middle, ("sink", None, 0, "t%d" % (nodes - 2))]


class Cell:
    """All programs of one topology, opened and connected."""

    numbers = itertools.count()

    def __init__(self, arguments, mode, link, wait, payload_bytes):
        self.arguments, self.mode = arguments, mode
        self.roles = topology(mode, 2 if mode in ("round_trip", "one_way") else 3)
        self.session = "c%dx%d" % (os.getpid(), next(self.numbers))
        self.programs = []
        try:
            self.open(link, wait, payload_bytes)
        except BaseException:
            self.kill()
            raise

    def open(self, link, wait, payload_bytes):
        addresses = {}
        for number, (role, publish, readers, subscribe) in enumerate(self.roles):
            program = Program(self.arguments.program)
            self.programs.append(program)
            formats = program.ask("hello protocol=1", "hello")["formats"].split(",")
            words = dict(session=self.session, role=role, node=number, nodes=len(self.roles), link=link, wait=wait,
                         format="raw" if "raw" in formats else formats[0], payload_bytes=payload_bytes, window=self.arguments.window, priority=0,
                         lock_memory=0, bind_address="127.0.0.1", key_of_tomorrow=1)
            words.update({"option." + key: value for key, value in self.arguments.option})
            if publish:
                words.update(publish=publish, readers=readers)
            if subscribe:
                words.update(subscribe=subscribe)
            if self.arguments.cores:
                words["core"] = self.arguments.cores[number % len(self.arguments.cores)]
            opened = program.ask("open " + " ".join("%s=%s" % word for word in words.items()), "opened")
            if "address" in opened and subscribe:
                addresses.setdefault(subscribe, []).append(opened["address"])
        for program, (_, publish, _, _) in zip(self.programs, self.roles):
            program.say("connect" + (" readers=" + ",".join(addresses[publish]) if publish in addresses else ""))
        self.settings = [program.expect("ready") for program in self.programs]

    def run(self, plan):
        """One run; returns the `done` words and the records of all nodes."""
        with tempfile.TemporaryDirectory(prefix="conformance") as directory:
            paths = [os.path.join(directory, "node%d.rec" % number) for number in range(len(self.programs))]
            lines = ["run " + " ".join("%s=%s" % word for word in dict(plan, record=path).items()) for path in paths]
            for program, line in reversed(list(zip(self.programs, lines))):
                program.ask(line, "running")
            done = [self.programs[0].expect("done")]
            for program in self.programs[1:]:
                program.say("stop messages=%s" % done[0]["sent"])
            done += [program.expect("done") for program in self.programs[1:]]
            return done, [read_record(path, plan["messages"]) for path in paths]

    def end(self):
        for program in self.programs:
            program.end()
        self.kill()

    def kill(self):
        for program in self.programs:
            program.kill()


def read_record(path, messages):
    """The slots of a record file as (scheduled, sent, received, arrivals)."""
    with open(path, "rb") as file:
        data = file.read()
    require(data[:8] == b"NOCTREC1", "the record begins with %r", data[:8])
    require(struct.unpack_from("<Q", data, 8)[0] == messages, "the record has another number of slots than messages=")
    require(data[16:32] == bytes(16), "bytes 16 to 31 of the record are not zero")
    require(len(data) == RECORD_BYTES * (messages + 1), "the record has %d bytes instead of %d", len(data),
            RECORD_BYTES * (messages + 1))
    return list(struct.iter_unpack("<qqqQ", data[32:]))


def check_node(role, done, slots):
    """`done` against the node's own table."""
    for key in DONE_KEYS:
        require(key in done, "done without %s", key)
    sent = sum(slot[1] != 0 for slot in slots)
    received = sum(slot[3] > 0 for slot in slots)
    extra = sum(slot[3] - 1 for slot in slots if slot[3] > 1)
    for key, counted in (("sent", sent), ("received", received), ("duplicated", extra)):
        require(int(done[key]) == counted, "%s says %s=%s, its record %d", role, key, done[key], counted)
    for key in ("unexpected", "overrun"):
        require(int(done[key]) == 0, "%s counted %s=%s", role, key, done[key])
    require(all((slot[2] != 0) == (slot[3] > 0) for slot in slots), "%s: received_ns and arrivals disagree", role)
    require(all(slot[0] != 0 for slot in slots if slot[1] or slot[3]), "%s: a slot without scheduled_ns", role)
    require(all(slot[1] <= slot[2] for slot in slots if slot[1] and slot[2]) or role in ("echo", "forwarder"),
            "%s: a reply before its message", role)
    require(float(done["cpu_ns"]) >= 0 and 0 < float(done["recorder_ns"]) < 1e6, "%s: cpu_ns or recorder_ns is odd", role)


def check_schedule(plan, slots):
    """The sender's own stamps."""
    sent = [slot for slot in slots if slot[1]]
    require(sent, "the sender sent nothing")
    require(all(slot[1] == 0 for slot in slots[len(sent):]), "the sender left a gap in its indices")
    if "rate_hz" not in plan:
        require(all(slot[0] == slot[1] for slot in sent), "without a rate scheduled_ns must equal sent_ns")
        return
    for index, slot in enumerate(sent):
        off_ns = slot[0] - sent[0][0] - index * 1e9 / plan["rate_hz"]
        require(abs(off_ns) <= 2, "scheduled_ns of message %d is %d ns off the schedule", index, off_ns)
        require(slot[1] >= slot[0], "message %d was sent before its time", index)


def check_run(cell, plan, done, records, lossless):
    for (role, *_), words, slots in zip(cell.roles, done, records):
        check_node(role, words, slots)
    check_schedule(plan, records[0])
    sent = int(done[0]["sent"])
    receivers = [0] if cell.mode == "round_trip" else []
    receivers += range(1, len(cell.roles))
    for number in receivers:
        role = cell.roles[number][0]
        if lossless:
            require(int(done[number]["received"]) == sent, "%s %d received %s of %d messages", role, number,
                    done[number]["received"], sent)
        for index, (mine, first) in enumerate(zip(records[number], records[0])):
            if mine[3]:
                require(first[1] != 0, "%s %d received message %d that was never sent", role, number, index)
                require(mine[0] == first[0], "%s %d changed the stamp of message %d", role, number, index)
                require(mine[2] >= first[1], "%s %d received message %d before it was sent", role, number, index)
    if cell.mode == "round_trip":
        require(int(done[1]["sent"]) in (0, int(done[1]["received"])), "the echo answered another number than it received")
    for number in range(1, len(cell.roles) - 1):
        if cell.mode == "chain":
            require(done[number]["sent"] == done[number]["received"], "forwarder %d lost messages of its own", number)


def latency(cell, plan, records):
    """Median and 99th percentile in microseconds, of the last node or the round trip, and how many arrived."""
    last = records[0] if cell.mode == "round_trip" else records[-1]
    trips = sorted(slot[2] - slot[0] for slot in last if slot[2])
    if not trips:
        return "nothing arrived"
    return "%4d arrived, p50 %9.2f µs, p99 %9.2f µs" % (len(trips), trips[len(trips) // 2] / 1e3,
                                                      trips[int(len(trips) * 0.99)] / 1e3)


def plans(mode, messages, rate_hz):
    """The runs of one mode: (name, words of `run`, must everything arrive)."""
    common = dict(seconds=30, warmup_messages=20, warmup_ms=2000, reply_timeout_ms=2000, touch="header")
    if mode == "round_trip":
        yield "closed loop", dict(common, messages=messages), True
        yield "open loop", dict(common, messages=min(messages, 300), rate_hz=rate_hz), True
    elif mode == "one_way":
        yield "at a rate", dict(common, messages=min(messages, 300), rate_hz=rate_hz, touch="full"), True
        yield "back to back", dict(common, messages=min(messages, 300)), False
    else:
        yield "at a rate", dict(common, messages=min(messages, 100), rate_hz=rate_hz), True


def talk_nonsense(arguments, hello):
    """A program that misunderstands says so and stays."""
    link, wait = hello["links"].split(",")[0], hello["waits"].split(",")[0]
    good = "session=n%d role=sink node=1 nodes=2 subscribe=t0 link=%s wait=%s window=1 format=%s" % (
        os.getpid(), link, wait, hello["formats"].split(",")[0])
    cases = ["fly away=1", "hello protocol=2", "open", "connect", "run messages=1 record=/nowhere",
             "open payload_bytes=4 " + good, "open payload_bytes=64 " + good.replace("role=sink", "role=king"),
             "open payload_bytes=64 " + good.replace("link=" + link, "link=pigeon"),
             "open payload_bytes=many " + good, "open payload_bytes=99999999999999999999 " + good]
    for case in cases:
        program = Program(arguments.program)
        try:
            program.say(case)
            require(program.reply()[0] == "error", "%r was not answered by an error", case)
            program.ask("hello protocol=1", "hello")
            program.end()
        except Nonconforming as reason:
            raise Nonconforming("after %.50r: %s" % (case, reason)) from None
        finally:
            program.kill()
    program = Program(arguments.program)
    try:
        program.ask("hello protocol=1", "hello")
        program.end(by_end_of_file=True)
    finally:
        program.kill()


def refuse_record(arguments, link, wait, payload_bytes):
    """A record that cannot be written is an error in place of `done`, and the peer still closes."""
    cell = Cell(arguments, "one_way", link, wait, payload_bytes)
    try:
        for program in reversed(cell.programs):
            program.ask("run messages=5 rate_hz=500 seconds=5 record=/nowhere/at/all.rec", "running")
        verb, _ = cell.programs[0].reply()
        require(verb == "error", "a record that cannot be written was answered by %r", verb)
        cell.programs[1].say("stop messages=5")
        require(cell.programs[1].reply()[0] == "error", "the sink wrote a record to nowhere")
        cell.end()
    finally:
        cell.kill()


def run_mode(arguments, mode, link, wait, payload_bytes):
    cell = Cell(arguments, mode, link, wait, payload_bytes)
    try:
        for name, plan, lossless in plans(mode, arguments.messages, arguments.rate):
            done, records = cell.run(plan)
            check_run(cell, plan, done, records, lossless and not arguments.allow_loss)
            print("ok    %-10s %-12s %-6s %-6s %8d B  %s" % (
                mode, name, link, wait, payload_bytes, latency(cell, plan, records)), flush=True)
        if arguments.settings:
            print("      " + ", ".join("%s=%s" % (key.removeprefix("setting."), value)
                                       for key, value in cell.settings[0].items()))
        cell.end()
    finally:
        cell.kill()


def arguments_of(command_line):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", nargs="+", help="the program and its arguments")
    parser.add_argument("--link", action="append", help="only this link")
    parser.add_argument("--wait", action="append", help="only this wait")
    parser.add_argument("--mode", action="append", help="only this mode")
    parser.add_argument("--payload", action="append", type=int, help="payload bytes (default 16, 64 and 60000)")
    parser.add_argument("--messages", type=int, default=500)
    parser.add_argument("--rate", type=float, default=200, help="Hz of the open loops")
    parser.add_argument("--window", type=int, default=512)
    parser.add_argument("--cores", type=lambda text: text.split(","), help="pin node i to the i-th of these cores")
    parser.add_argument("--option", action="append", default=[], type=lambda text: text.split("=", 1), metavar="K=V")
    parser.add_argument("--allow-loss", action="store_true", help="the middleware may lose messages")
    parser.add_argument("--private", action="store_true",
                        help="in a network of its own, with multicast on lo, and with a /dev/shm of its own")
    parser.add_argument("--settings", action="store_true", help="print what the peer reports of its settings")
    return parser.parse_args(command_line)


PRIVATE = "NOCTULE_CONFORMANCE_IS_PRIVATE"


def enter_private_namespaces():
    """Starts this program again where multicast reaches no other program and /dev/shm is its own."""
    setup = ("ip link set lo up multicast on && ip route add 224.0.0.0/4 dev lo && "
             "mount -t tmpfs tmpfs /dev/shm && exec \"$0\" \"$@\"")
    unshare = ["unshare", "-nm"] if os.geteuid() == 0 else ["unshare", "-rnm"]
    os.environ[PRIVATE] = "1"
    os.execvp(unshare[0], [*unshare, "sh", "-c", setup, sys.executable, *sys.argv])


def main():
    arguments = arguments_of(sys.argv[1:])
    if arguments.private and PRIVATE not in os.environ:
        enter_private_namespaces()
    failures = 0
    program = Program(arguments.program)
    try:
        hello = program.ask("hello protocol=1", "hello")
        for key in HELLO_KEYS:
            require(hello.get(key), "hello without %s", key)
        program.end()
    except Nonconforming as reason:
        sys.exit("FAIL  hello: %s" % reason)
    finally:
        program.kill()
    print("%(name)s %(version)s, links %(links)s, waits %(waits)s, modes %(modes)s" % hello)
    links = arguments.link or hello["links"].split(",")
    waits = arguments.wait or hello["waits"].split(",")
    modes = arguments.mode or hello["modes"].split(",")
    payloads = [size for size in arguments.payload or (16, 64, 60000) if size <= int(hello["max_payload_bytes"])]
    cases = [(run_mode, mode, link, wait, size) for link in links for wait in waits for mode in modes for size in payloads]
    cases += [(refuse_record, links[0], waits[0], payloads[0]), (lambda these: talk_nonsense(these, hello),)]
    for case, *words in cases:
        try:
            case(arguments, *words)
        except Nonconforming as reason:
            failures += 1
            print("FAIL  %s: %s" % (" ".join(map(str, words)) or "nonsense", reason), flush=True)
    left = sorted(os.listdir("/dev/shm")) if arguments.private else []
    if left:
        failures += 1
        print("FAIL  left in /dev/shm after close: %s" % left[:5])
    print("%d checks failed" % failures if failures else "conforms")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
