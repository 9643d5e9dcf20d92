"""How well and how fast LZ4 and Zstandard compress what robots send, one core: `python compressors.py`, with `lz4` and `zstandard`.

CPU time of the process, best of seven; a busy machine makes it somewhat longer.
"""

import math
import random
import struct
import time

import lz4.frame
import zstandard


def camera(count=2_000_000):
    """A gradient with three bits of noise."""
    drawn = random.Random(1)
    return bytes(((at % 1920) // 16 + drawn.getrandbits(3)) & 255 for at in range(count))


def imu(count=5_000):
    """sensor_msgs/msg/Imu in CDR: 12 numbers that change, 27 of covariances that do not."""
    drawn = random.Random(2)
    out = b""
    for at in range(count):
        changing = [math.sin(at / 50) + drawn.gauss(0, 0.01) for _ in range(10)]
        out += struct.pack("<4sII4s10d27d", b"\0\1\0\0", at, at * 10_000_000 % 10**9, b"imu\0", *changing, *[0.01] * 27)
    return out


def points(count=100_000):
    """A point cloud: x, y, z and intensity as float32, walls with a centimetre of noise."""
    drawn = random.Random(3)
    out = bytearray()
    for at in range(count):
        angle, distance = at / count * 2 * math.pi, 10 + drawn.gauss(0, 0.01)
        out += struct.pack("<ffff", distance * math.cos(angle), distance * math.sin(angle), at % 16 / 8, drawn.randrange(100))
    return bytes(out)


def best(compress, data):
    shortest = math.inf
    for _ in range(7):
        start = time.process_time()
        out = compress(data)
        shortest = min(shortest, time.process_time() - start)
    return len(data) / len(out), len(data) / shortest / 1e6


def main():
    kinds = {"camera, raw": camera(), "IMU in CDR": imu(), "point cloud": points()}
    print("| | " + " | ".join(kinds) + " |\n|---" * 1 + "|---" * len(kinds) + "|")
    compressors = {"LZ4": lambda data: lz4.frame.compress(data, compression_level=0)}
    for level in (-5, 1, 3):
        compressors[f"Zstandard {level}"] = zstandard.ZstdCompressor(level=level).compress
    for name, compress in compressors.items():
        cells = [best(compress, data) for data in kinds.values()]
        print(f"| {name} | " + " | ".join(f"{ratio:.2f} at {speed:.0f} MB/s" for ratio, speed in cells) + " |")


main()
