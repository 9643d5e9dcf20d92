"""Cost of a recorder and a view while a robot runs: `python processor.py NOCTULE SECONDS`, with the package `noctule`.

This process publishes 240 topics: 237 numbers at 10 Hz and three cameras of 320 x 240 pixels (`rgb8`) at 10 Hz, 2,400 samples and 6.9 MB a second.
By turns one program reads them: processor time, and how often its threads slept and were woken (`voluntary_ctxt_switches`), a second.
"""

import os
import re
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import noctule
from memory import page, processor_s

NUMBERS, CAMERAS, PERIOD_S, DOMAIN = 237, 3, 0.1, 4891
WIDTH, HEIGHT = 320, 240
WARM_UP_S = 3
FEW = {"t": "look", "pictures": [], "values": [], "curves": []}
# Everything that a page can select, and more than it is sent.
ALL = {
    "t": "look",
    "pictures": [f"/camera_{index}" for index in range(CAMERAS)],
    "values": [f"/n{index:03}" for index in range(8)],
    "curves": [[f"/n{index:03}", "data"] for index in range(16)],
}


def wake_ups(process):
    """Of all threads that there are now."""
    count = 0
    for status in Path(f"/proc/{process.pid}/task").glob("*/status"):
        count += int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status.read_text(), re.MULTILINE).group(1))
    return count


def publish(stop):
    node = noctule.Node("robot", domain=DOMAIN)
    numbers = [
        node.publisher(f"/n{index:03}", type_name="std_msgs/msg/Float64", format="cdr", keep_last=32) for index in range(NUMBERS)
    ]
    cameras = [
        node.publisher(f"/camera_{index}", type_name="sensor_msgs/msg/Image", format="cdr", keep_last=8, payload_bytes_max=300_000)
        for index in range(CAMERAS)
    ]
    # Header (stamp, frame "cam"), height, width, "rgb8", big-endian, step, length, pixels.
    head = struct.pack("<II", 0, 0) + struct.pack("<I", 4) + b"cam\0" + struct.pack("<II", HEIGHT, WIDTH)
    head += struct.pack("<I", 5) + b"rgb8\0" + b"\0" + bytes(2) + struct.pack("<II", WIDTH * 3, WIDTH * HEIGHT * 3)
    picture = b"\0\1\0\0" + head + os.urandom(WIDTH * HEIGHT * 3)
    tick, due = 0, time.monotonic()
    while not stop.is_set():
        payload = b"\0\1\0\0" + struct.pack("<d", tick)
        for publisher in numbers:
            publisher.publish(payload)
        for camera in cameras:
            camera.publish(picture)
        tick += 1
        due = max(due + PERIOD_S, time.monotonic())
        stop.wait(due - time.monotonic())


def measure(name, program, arguments, seconds, look=None):
    process = subprocess.Popen(
        [program, *arguments, "--domain", str(DOMAIN)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    received = [0]
    if look:
        url = process.stdout.readline().strip()
        threading.Thread(target=page, args=(url, received, look), daemon=True).start()
    threading.Event().wait(WARM_UP_S)
    began, before = time.monotonic(), (processor_s(process), wake_ups(process), received[0])
    threading.Event().wait(seconds)
    took, after = time.monotonic() - began, (processor_s(process), wake_ups(process), received[0])
    used, woken, got = ((b - a) / took for a, b in zip(before, after))
    print(f"| {name} | {1e3 * used:.0f} | {woken:.0f} | {got / 1e3:.0f} |", flush=True)
    process.terminate()
    process.communicate()


def main():
    program, seconds = sys.argv[1], float(sys.argv[2])
    stop = threading.Event()
    robot = threading.Thread(target=publish, args=(stop,))
    robot.start()
    threading.Event().wait(1)
    print("| program | processor, ms/s | wake-ups/s | to the page, kB/s |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        measure("`record --out`", program, ["record", "--out", f"{folder}/a.mcap"], seconds)
    measure("`view`, no page", program, ["view", "--no-open"], seconds)
    measure("`view`, a page with the table", program, ["view", "--no-open"], seconds, FEW)
    measure("`view`, a page with three cameras, eight samples, sixteen curves", program, ["view", "--no-open"], seconds, ALL)
    measure("`record --serve`, no viewer", program, ["record", "--serve"], seconds)
    measure("`top`", program, ["top", "--seconds", str(int(seconds) + 10)], seconds)
    stop.set()
    robot.join()


main()
