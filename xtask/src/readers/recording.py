"""Compares a recording of `noctule record` with what `noctule record --check` says of it, read by the package `mcap`."""

import json
import pathlib
import sys

from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from rosbags.highlevel import AnyReader

STATUS = {
    "stamp": {"sec": 12, "nanosec": 34},
    "name": "a robot's état",
    "main": {"volts": 24.5, "percent": 80},
    "others": [{"volts": 3.7, "percent": 1}, {"volts": -1.0, "percent": 2}],
    "position": [0.5, -0.25, 1000.0],
    "samples": [-1, 2, -32768],
    "words": ["a", "bc"],
    "is_ready": True,
    "raw": 255,
    "letter": 65,
}


def plain(value):
    """A decoded message of either package as dictionaries, lists and numbers."""
    if isinstance(value, (bytes, bytearray)):
        return list(value) if len(value) != 1 else value[0]
    if isinstance(value, (str, int, float, bool)):
        return value
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(element) for element in value]
    names = getattr(value, "__slots__", None) or vars(value)
    return {name.lstrip("_"): plain(getattr(value, name)) for name in names if not name.startswith("__")}


def check_fields(path):
    """The typed topic is decoded by its definition in the file, by two packages that share no code."""
    with open(path, "rb") as file:
        decoded = make_reader(file, decoder_factories=[DecoderFactory()]).iter_decoded_messages(topics=["/status"])
        schema, _, _, message = next(iter(decoded))
    assert (schema.name, schema.encoding) == ("reader_msgs/msg/Status", "ros2msg"), schema
    assert plain(message) == STATUS, plain(message)
    with AnyReader([path]) as reader:
        connection = next(of for of in reader.connections if of.topic == "/status")
        _, _, raw = next(reader.messages(connections=[connection]))
        message = plain(reader.deserialize(raw, connection.msgtype))
    message.pop("msgtype", None)
    # An octet is signed to rosbags.
    message["raw"] &= 0xFF
    assert message == STATUS, message
    print("mcap-ros2-support and rosbags decode the fields of /status")


def main():
    path, checked = pathlib.Path(sys.argv[1]), json.loads(pathlib.Path(sys.argv[2]).read_text())
    topics = {topic["topic"]: topic for topic in checked["topics"]}
    ages, counts = {}, {}
    with open(path, "rb") as file:
        for _, channel, message in make_reader(file).iter_messages():
            counts[channel.topic] = counts.get(channel.topic, 0) + 1
            ages.setdefault(channel.topic, []).append(message.log_time - message.publish_time)
    assert counts == {name: topic["messages"] for name, topic in topics.items()}, (counts, topics)
    for name, topic in topics.items():
        assert max(ages[name]) == topic["age_max_ns"], name
        if topic["age_p50_ns"] is not None:
            assert sorted(ages[name])[len(ages[name]) // 2] == topic["age_p50_ns"], name
    check_fields(path)
    assert counts and checked["damage"] is None
    print(f"{sum(counts.values())} messages of {len(counts)} topics agree with --check")


main()
