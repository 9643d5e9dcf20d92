"""Reads files of recorders that were killed, with the package `mcap`: they have as many messages as our reader found.

Such a file has no end, so it is read from front to back; the package says by an exception that the end is missing.
"""

import collections
import json
import pathlib
import sys

from mcap.exceptions import EndOfFile, McapError
from mcap.records import Channel, Message
from mcap.stream_reader import StreamReader


def counts(path):
    found, topics = collections.Counter(), {}
    with open(path, "rb") as file:
        try:
            for record in StreamReader(file).records:
                if isinstance(record, Channel):
                    topics[record.id] = record.topic
                elif isinstance(record, Message):
                    found[topics[record.channel_id]] += 1
        except EndOfFile:
            return found, True
    return found, False


def main():
    files, cut = sorted(pathlib.Path(sys.argv[1]).glob("*.mcap")), 0
    messages = 0
    for path in files:
        expected = {topic: count for topic, count in json.loads(path.with_suffix(".json").read_text()).items() if count}
        found, is_cut = counts(path)
        assert dict(found) == expected, (path, found, expected)
        cut += is_cut
        messages += sum(found.values())
    assert files and cut, "no file of a killed recorder"
    print(f"{messages} messages in {len(files)} files of killed recorders, {cut} without an end")


main()
