"""Writes recordings as other recorders write them, and what is in them by their own readers, as JSON beside each.

Bags of ROS 1 and of rosbag2 by the package `rosbags`, a log of PX4 byte by byte and read again by `pyulog`.
"""

import json
import pathlib
import shutil
import sqlite3
import struct
import sys

import numpy as np
from pyulog import ULog
from rosbags.highlevel import AnyReader
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin
from rosbags.rosbag2 import Writer as Writer2
from rosbags.typesys import Stores, get_typestore

SECOND_NS = 1_000_000_000
START_NS = 1_700_000_000 * SECOND_NS


def messages(store, count, is_ros1):
    """An IMU of 100 Hz, 1 to 3 ms old, and a text at every tenth."""
    types = store.types
    for index in range(count):
        log_ns = START_NS + index * 10_000_000
        stamp_ns = log_ns - 1_000_000 - index * 2_000_000 // count
        stamp = types["builtin_interfaces/msg/Time"](stamp_ns // SECOND_NS, stamp_ns % SECOND_NS)
        more = {"seq": index} if is_ros1 else {}
        header = types["std_msgs/msg/Header"](stamp=stamp, frame_id="imu", **more)
        vector, nine = types["geometry_msgs/msg/Vector3"](1.0, 2.0, float(index)), np.zeros(9)
        turn = types["geometry_msgs/msg/Quaternion"](0.0, 0.0, 0.0, 1.0)
        yield "/imu", "sensor_msgs/msg/Imu", log_ns, types["sensor_msgs/msg/Imu"](
            header=header, orientation=turn, orientation_covariance=nine, angular_velocity=vector,
            angular_velocity_covariance=nine, linear_acceleration=vector, linear_acceleration_covariance=nine)
        if index % 10 == 0:
            yield "/text", "std_msgs/msg/String", log_ns, types["std_msgs/msg/String"](data=f"text {index}")


def counted(path):
    """Counts and first and last log time of each topic, by the package's own reader."""
    topics = {}
    # Bags of Humble in SQLite have no definitions; counting needs none.
    with AnyReader([path], default_typestore=get_typestore(Stores.ROS2_HUMBLE)) as reader:
        for connection, log_ns, raw in reader.messages():
            topic = topics.setdefault(connection.topic, {"messages": 0, "bytes": 0, "first_log_ns": log_ns})
            topic["messages"] += 1
            topic["bytes"] += len(raw)
            topic["last_log_ns"] = log_ns
    return topics


def ros1(folder, name, compression):
    store, path, connections = get_typestore(Stores.ROS1_NOETIC), folder / f"{name}.bag", {}
    writer = Writer1(path)
    if compression:
        writer.set_compression(compression)
    with writer:
        for topic, kind, log_ns, message in messages(store, 500, True):
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, kind, typestore=store)
            writer.write(connections[topic], log_ns, store.serialize_ros1(message, kind))
    return path, path


def ros2(folder, name, plugin, compression=CompressionMode.NONE, version=9):
    store, path, connections = get_typestore(Stores.ROS2_HUMBLE), folder / name, {}
    writer = Writer2(path, version=version, storage_plugin=plugin)
    if compression != CompressionMode.NONE:
        writer.set_compression(compression, CompressionFormat.ZSTD)
    with writer:
        for topic, kind, log_ns, message in messages(store, 500, False):
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, kind, typestore=store)
            writer.write(connections[topic], log_ns, store.serialize_cdr(message, kind))
    return path, path


def humble(path):
    """The same bag as Humble writes it: version 5 of the metadata, no definitions and no hashes in the database."""
    old = path.with_name("rosbag2_humble")
    shutil.copytree(path, old)
    [database] = old.glob("*.db3")
    with sqlite3.connect(database) as connection:
        connection.executescript("DROP TABLE message_definitions; DROP TABLE metadata; DROP TABLE schema; "
                                 "ALTER TABLE topics DROP COLUMN type_description_hash;")
    connection.close()
    newer = ("type_description_hash", "RIHS01_", "ros_distro")
    lines = [line for line in (old / "metadata.yaml").read_text().splitlines() if not any(word in line for word in newer)]
    (old / "metadata.yaml").write_text("\n".join("  version: 5" if line.strip().startswith("version:") else line for line in lines) + "\n")
    return old, old


FORMATS = [
    "report:float[3] rpm;bool armed;uint8_t[3] _padding0;",
    "vehicle_attitude:uint64_t timestamp;uint64_t timestamp_sample;float[4] q;uint8_t kind;uint8_t[3] _padding0;",
    "esc_status:uint64_t timestamp;report[2] esc;uint16_t count;uint8_t[6] _padding0;",
]


def px4(folder):
    """A log with two instances of a topic, nested arrays, padding, a parameter and a text."""
    def entry(kind, body):
        return struct.pack("<HB", len(body), ord(kind)) + body

    out = b"ULog\x01\x12\x35\x01" + struct.pack("<Q", 5) + entry("B", bytes(40))
    out += b"".join(entry("F", text.encode()) for text in FORMATS)
    for number, (instance, name) in enumerate([(0, "vehicle_attitude"), (0, "esc_status"), (1, "esc_status")]):
        out += entry("A", struct.pack("<BH", instance, number) + name.encode())
    for index in range(400):
        now_us = 1_000_000 + index * 2_500
        out += entry("D", struct.pack("<HQQffffB", 0, now_us, now_us - 300 - index, 1, 0, 0, index, 3))
        report = struct.pack("<fff?3x", index, 2, 3, index % 2 == 0)
        out += entry("D", struct.pack("<HQ", 1 + index % 2, now_us) + report + report + struct.pack("<H", index))
        if index == 200:
            out += entry("L", b"6" + struct.pack("<Q", now_us) + b"a text")
    path = folder / "flight.ulg"
    path.write_bytes(out)
    topics = {}
    for data in ULog(str(path)).data_list:
        name = f"/{data.name}" + (f"_{data.multi_id}" if data.multi_id else "")
        stamps = data.data["timestamp"]
        topics[name] = {
            "messages": len(stamps), "first_log_ns": int(stamps[0]) * 1000, "last_log_ns": int(stamps[-1]) * 1000,
            "values": {field: [float(value) for value in values] for field, values in data.data.items() if "_padding" not in field},
        }
    return path, topics


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True)
    compressions = Writer1.CompressionFormat
    made = [ros1(folder, "plain", None), ros1(folder, "bz2", compressions.BZ2), ros1(folder, "lz4", compressions.LZ4),
            ros2(folder, "rosbag2", StoragePlugin.MCAP), ros2(folder, "rosbag2_zstd", StoragePlugin.MCAP, CompressionMode.STORAGE),
            ros2(folder, "rosbag2_sqlite_8", StoragePlugin.SQLITE3, version=8),
            ros2(folder, "rosbag2_sqlite", StoragePlugin.SQLITE3), humble(folder / "rosbag2_sqlite_8")]
    # One file of a bag, beside its metadata.
    made += [(next(path.glob("*.db3")), path) for path, _ in made[-3:]] + [(next((folder / "rosbag2").glob("*.mcap")), folder / "rosbag2")]
    for mode in (CompressionMode.FILE, CompressionMode.MESSAGE):
        for plugin in StoragePlugin:
            made.append(ros2(folder, f"{plugin.name}_{mode.name}", plugin, mode))
    expected = {str(file): counted(path) for file, path in made}
    log, topics = px4(folder)
    expected[str(log)] = topics
    (folder / "expected.json").write_text(json.dumps({"files": expected}))


main()
