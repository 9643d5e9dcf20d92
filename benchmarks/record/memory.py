"""The memory of a recorder and of a view over time: `python memory.py NOCTULE SECONDS FOLDER`, with the package `noctule`.

This process publishes 240 topics: 239 numbers at 2 Hz and a picture of 100 kB at 2 Hz. `noctule record` keeps the last minute of them in
FOLDER, a second one all of them in one file, and `noctule view` serves a page that looks at a curve and the picture. Every ten
seconds a line: seconds, then resident memory of each in kB (`VmRSS`); at the end the slopes over the last two thirds, and the processor time.
"""

import base64
import json
import os
import re
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import noctule

TOPICS = 239
DOMAIN = 4890
EVERY_S = 10
PERIOD_S = 0.5


def resident_kb(process):
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status).group(1))


def processor_s(process):
    user, system = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


LOOK = {"t": "look", "pictures": ["/camera"], "values": ["/n000"], "curves": [["/n000", "data"]]}


def page(url, received, look=LOOK):
    """A browser's socket that takes all it gets."""
    host, token = re.fullmatch(r"http://([^/]+)/\?token=(.+)", url).groups()
    name, port = host.split(":")
    stream = socket.create_connection((name, int(port)))
    key = base64.b64encode(os.urandom(16)).decode()
    lines = [f"GET /socket?token={token} HTTP/1.1", f"Host: {host}", f"Origin: http://{host}", "Upgrade: websocket"]
    lines += ["Connection: Upgrade", f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", "", ""]
    stream.sendall("\r\n".join(lines).encode())
    # A client waits for the answer before it sends frames.
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += stream.recv(1 << 16)
    text = json.dumps(look).encode()
    # As short as it can be (RFC 6455, section 5.2), masked by zeros.
    length = bytes([0x80 | len(text)]) if len(text) < 126 else bytes([0x80 | 126]) + struct.pack(">H", len(text))
    stream.sendall(b"\x81" + length + bytes(4) + text)
    while True:
        part = stream.recv(1 << 20)
        if not part:
            return
        received[0] += len(part)


def slope_kb_per_hour(rows, column):
    rows = rows[len(rows) // 3 :]
    times, values = [row[0] for row in rows], [row[column] for row in rows]
    mean_t, mean_v = sum(times) / len(times), sum(values) / len(values)
    over = sum((t - mean_t) ** 2 for t in times)
    return 3600 * sum((t - mean_t) * (v - mean_v) for t, v in zip(times, values)) / over if over else 0.0


def main():
    program, seconds, folder = sys.argv[1], float(sys.argv[2]), Path(sys.argv[3])
    node = noctule.Node("robot", domain=DOMAIN)
    numbers = [
        node.publisher(f"/n{index:03}", type_name="std_msgs/msg/Float64", format="cdr", keep_last=32) for index in range(TOPICS)
    ]
    camera = node.publisher("/camera", format="cdr", keep_last=8, payload_bytes_max=200_000)

    def start(*arguments):
        return subprocess.Popen([program, *arguments, "--domain", str(DOMAIN)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    folder.mkdir(parents=True, exist_ok=True)
    recorders = [
        start("record", "--keep-seconds", "60", "--out", str(folder / "last.mcap")),
        start("record", "/n*", "--out", str(folder / "all.mcap")),
    ]
    view = start("view", "--no-open")
    received = [0]
    threading.Thread(target=page, args=(view.stdout.readline().strip(), received), daemon=True).start()
    began = due = time.monotonic()
    tick, shown, rows = 0, began + EVERY_S, []
    print("s,record_keep_kb,record_all_kb,view_kb", flush=True)
    while time.monotonic() < began + seconds:
        payload = b"\0\1\0\0" + struct.pack("<d", tick)
        for publisher in numbers:
            publisher.publish(payload)
        camera.publish(bytes(100_000))
        tick += 1
        now = time.monotonic()
        if now >= shown:
            rows.append((round(now - began), *map(resident_kb, (*recorders, view))))
            print(",".join(map(str, rows[-1])), flush=True)
            shown += EVERY_S
        due = max(due + PERIOD_S, now)
        threading.Event().wait(due - now)
    for index, name in enumerate(["record --keep-seconds 60", "record", "view"], 1):
        used = 1e3 * processor_s((*recorders, view)[index - 1]) / seconds
        print(f"# {name}: {slope_kb_per_hour(rows, index):+.0f} kB an hour over the last two thirds, {used:.1f} ms of a processor a second")
    print(f"# {tick * (TOPICS + 1)} samples published, {received[0] / seconds / 1e3:.0f} kB/s to the page")
    for process in (*recorders, view):
        process.terminate()
    for recorder in recorders:
        print("#", recorder.communicate()[0].splitlines()[1])


if __name__ == "__main__":
    main()
