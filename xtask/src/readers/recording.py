"""Compares a recording of `noctule record` with what `noctule record --check` says of it, read by the package `mcap`."""

import json
import pathlib
import sys

from mcap.reader import make_reader


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
    assert counts and checked["damage"] is None
    print(f"{sum(counts.values())} messages of {len(counts)} topics agree with --check")


main()
