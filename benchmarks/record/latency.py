"""Latency that a recorder and an open page add to a robot's topics: `python latency.py NOCTULE FOLDER [TRIALS]`.

The lab measures the same cells twice, trial by trial in turns: `bare` is its own peer `noctule`; `watched` is the same program with
`noctule record --out` of all topics and `noctule view` with a page that takes all it gets in the same network namespace. `noctule lab compare`
judges the pairs. Written before the verdict: how many samples each recorder kept.
"""

import base64
import os
import re
import socket
import subprocess
import sys
import threading
from pathlib import Path

SCENARIO = """
name = "recorder_and_page"
description = "Topics of a robot with and without a recorder and a page"
trials = {trials}
seconds = 1.5
messages = 2_000
warm_up_seconds = 1.5

[[cells]]
peer = "{peer}"
link = ["shm", "udp"]
mode = "one_way"
payload_bytes = 64
rate_hz = 1000
wait = "block"
placement = "split"

[[cells]]
peer = "{peer}"
link = "shm"
mode = "one_way"
payload_bytes = 1_000_000
rate_hz = 30
wait = "block"
placement = "split"

[[cells]]
peer = "{peer}"
link = "shm"
mode = "one_way"
payload_bytes = 64
rate_hz = 1000
wait = "block"
placement = "split"
beside = {{ payload_bytes = 1_000_000, rate_hz = 30 }}
"""

MANIFEST = """
name = "{peer}"
summary = "the library, {peer}"
homepage = "https://example.org"
licence = "MIT OR Apache-2.0"
program = "peer.sh"
links = ["shm", "udp"]
waits = ["spin", "block", "hybrid"]
modes = ["round_trip", "one_way", "chain", "fan_out"]
"""

PEER = """#!/bin/bash
{watch}
exec {program} lab node noctule > >(exec sed -u s/name=noctule/name={peer}/)
"""

# The first node in a namespace of the lab's own starts them; they keep the namespace, so that its number is not reused while the folder is there.
WATCH = """
here={folder}/$(readlink /proc/self/ns/net | tr -dc 0-9)
if [ "$(readlink /proc/self/ns/net)" != "$(readlink /proc/$PPID/ns/net)" ] && mkdir $here 2>/dev/null; then
    setsid bash {folder}/watch.sh $here $$ </dev/null >/dev/null 2>&1 &
fi
"""

WATCHER = """
here=$1
{program} record --out $here/a.mcap >$here/counts 2>&1 & recorder=$!
{program} view --no-open >$here/url 2>$here/view & view=$!
{python} {own} page $here/url & page=$!
tail --pid=$2 -s 0.1 -f /dev/null
mv $here $here.done.$recorder
kill -INT $recorder; kill $view $page; wait $recorder
rm -f $here.done.$recorder/a.mcap*
"""


def page(path):
    """A browser's socket that takes all it gets."""
    while not (text := path.read_text()).endswith("\n"):
        threading.Event().wait(0.01)
    host, token = re.search(r"http://([^/]+)/\?token=(\S+)", text).groups()
    stream = socket.create_connection((host.split(":")[0], int(host.split(":")[1])))
    key = base64.b64encode(os.urandom(16)).decode()
    lines = [f"GET /socket?token={token} HTTP/1.1", f"Host: {host}", f"Origin: http://{host}", "Upgrade: websocket"]
    lines += ["Connection: Upgrade", f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", "", ""]
    stream.sendall("\r\n".join(lines).encode())
    while stream.recv(1 << 20):
        pass


def write(path, text, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def main():
    program, folder = str(Path(sys.argv[1]).resolve()), Path(sys.argv[2]).resolve()
    trials = int(sys.argv[3]) if len(sys.argv) > 3 else 10
    state = folder / "state"
    for peer, watch in (("bare", ""), ("watched", WATCH.format(folder=state))):
        write(folder / "peers" / peer / "peer.toml", MANIFEST.format(peer=peer))
        write(folder / "peers" / peer / "peer.sh", PEER.format(program=program, peer=peer, watch=watch), 0o755)
        write(folder / f"{peer}.toml", SCENARIO.format(peer=peer, trials=trials))
    own = Path(__file__).resolve()
    write(state / "watch.sh", WATCHER.format(program=program, python=sys.executable, own=own))
    command = [program, "lab", "run", str(folder / "bare.toml"), "--versus", str(folder / "watched.toml"), "--out", str(folder / "out")]
    subprocess.run(command, env={**os.environ, "NOCTULE_PEERS": str(folder / "peers")}, check=False)
    runs = [folder / "out" / side / "run.json" for side in "ab"]
    # Cells are compared that differ in nothing, the peer's name included.
    runs[1].write_text(runs[1].read_text().replace('"watched"', '"bare"'))
    for counts in sorted(state.glob("*.done.*/counts")):
        rows = [line.split() for line in counts.read_text().splitlines()[1:]]
        print("recorded", *(f"{row[0].split('/')[-1]}: {row[1]}, {row[-3]} {row[-2]} {row[-1]};" for row in rows))
    subprocess.run([program, "lab", "compare", *map(str, runs)], check=False)


if sys.argv[1] == "page":
    page(Path(sys.argv[2]))
else:
    main()
