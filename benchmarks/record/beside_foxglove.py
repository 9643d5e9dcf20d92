"""Cost of live viewing, beside Foxglove's own library: `python beside_foxglove.py NOCTULE [SECONDS]`, with `noctule`, `foxglove-sdk`, `websockets`.

240 topics of 12 bytes of CDR at 10 Hz, served to one client that subscribes to all of them: by `NOCTULE record --serve`, which reads them
from another process, and by `foxglove-sdk` in the process that publishes them. Both are asked for the same: messages and bytes that the client gets, and CPU
time of the serving process while it has the client; of the library's also without one, since its process publishes as well.
"""

import asyncio
import json
import os
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

TOPICS = 240
PERIOD_S = 0.1
DOMAIN = 4891
PORT = 8791


def cpu_s(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def each_period(publish, seconds):
    due = end = time.monotonic()
    tick = 0
    while due < end + seconds:
        publish(b"\0\1\0\0" + struct.pack("<d", tick))
        tick += 1
        due = max(due + PERIOD_S, time.monotonic())
        threading.Event().wait(max(0.0, due - time.monotonic()))


def by_foxglove(seconds):
    import foxglove

    server = foxglove.start_server(host="127.0.0.1", port=PORT)
    schema = foxglove.Schema(name="std_msgs/msg/Float64", encoding="ros2msg", data=b"float64 data\n")
    channels = [foxglove.Channel(f"/n{index:03}", message_encoding="cdr", schema=schema) for index in range(TOPICS)]

    def publish(payload):
        for channel in channels:
            channel.log(payload)

    each_period(publish, seconds)
    server.stop()


def by_noctule(seconds):
    import noctule

    node = noctule.Node("robot", domain=DOMAIN)
    publishers = [
        node.publisher(f"/n{index:03}", type_name="std_msgs/msg/Float64", format="cdr", keep_last=32) for index in range(TOPICS)
    ]

    def publish(payload):
        for publisher in publishers:
            publisher.publish(payload)

    each_period(publish, seconds)


async def watch(url, pid, seconds):
    """Messages and bytes a second, and CPU milliseconds a second of the server, once all topics flow."""
    import websockets

    protocols = ["foxglove.sdk.v1", "foxglove.websocket.v1"]
    async with websockets.connect(url, subprotocols=protocols, max_size=None, compression=None) as socket:
        subscribed, flowing = set(), set()
        begun = None
        messages = count_bytes = 0
        while begun is None or time.monotonic() < begun + seconds:
            frame = await socket.recv()
            if isinstance(frame, str):
                said = json.loads(frame)
                new = [channel["id"] for channel in said.get("channels", []) if channel["id"] not in subscribed]
                if new:
                    subscribed.update(new)
                    subscriptions = [{"id": channel, "channelId": channel} for channel in new]
                    await socket.send(json.dumps({"op": "subscribe", "subscriptions": subscriptions}))
            elif frame[0] == 1:
                flowing.add(frame[1:5])
                if begun is None and len(flowing) == TOPICS:
                    begun, cpu, messages, count_bytes = time.monotonic(), cpu_s(pid), 0, 0
                messages += 1
                count_bytes += len(frame)
        took = time.monotonic() - begun
        return messages / took, count_bytes / took, (cpu_s(pid) - cpu) / took * 1e3


def served(publisher):
    """Gives the process that publishes a start and takes it back."""
    return subprocess.Popen([sys.executable, __file__, *publisher], stdin=subprocess.DEVNULL)


def main():
    program, seconds = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 20.0
    print("| server | messages/s | bytes/s | CPU of its process, ms/s |\n|---|---|---|---|", flush=True)
    robot = served(["by_noctule", str(seconds * 3 + 60)])
    command = [program, "record", f"--serve=127.0.0.1:{PORT}", "--domain", str(DOMAIN)]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    url = next(line for line in server.stderr if "ws://" in line).split()[-1]
    row = asyncio.run(watch(url, server.pid, seconds))
    print("| noctule record --serve | {:.0f} | {:.0f} | {:.1f} |".format(*row), flush=True)
    for process in (server, robot):
        process.terminate()
        process.wait()
    robot = served(["by_foxglove", str(seconds * 3 + 60)])
    threading.Event().wait(3)
    before, begun = cpu_s(robot.pid), time.monotonic()
    threading.Event().wait(seconds / 2)
    alone = (cpu_s(robot.pid) - before) / (time.monotonic() - begun) * 1e3
    row = asyncio.run(watch(f"ws://127.0.0.1:{PORT}", robot.pid, seconds))
    print("| foxglove-sdk, with the publisher | {:.0f} | {:.0f} | {:.1f} |".format(*row))
    print(f"| the same without a client | | | {alone:.1f} |")
    robot.terminate()
    robot.wait()


if len(sys.argv) > 2 and sys.argv[1] in ("by_foxglove", "by_noctule"):
    globals()[sys.argv[1]](float(sys.argv[2]))
else:
    main()
