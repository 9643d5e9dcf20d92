"""Compares samples.mcap and latency.hlog of a run with its run.json, read by other people's packages."""

import json
import pathlib
import sys

from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory

BEYOND = 10


def end_to_end(cell, rows):
    """Latencies of a cell: of a chain those of the last node."""
    last = cell["nodes"] - 1
    return sorted(latency for node, latency in rows if cell["mode"] != "chain" or node == last)


def check_samples(path, cells):
    rows = [[] for _ in cells]
    with open(path, "rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        for schema, channel, message, sample in reader.iter_decoded_messages():
            assert schema.encoding == "ros2msg", schema.encoding
            assert message.log_time == sample.received_ns, channel.topic
            assert message.publish_time == sample.scheduled_ns, channel.topic
            assert sample.latency_ns == sample.received_ns - sample.scheduled_ns, channel.topic
            rows[int(channel.metadata["cell"])].append((sample.node, sample.latency_ns))
    for cell, cell_rows in zip(cells, rows):
        latencies = end_to_end(cell, cell_rows)
        assert len(latencies) == cell["received"], (cell["peer"], len(latencies), cell["received"])
        if cell["latency_ns"]:
            rank = len(latencies) // 2
            assert latencies[rank] == cell["latency_ns"]["p50"], cell["peer"]
            assert latencies[-1] == cell["latency_ns"]["max"], cell["peer"]
    return sum(map(len, rows))


def check_histograms(path, cells):
    valid = [cell for cell in cells if cell["valid"]]
    reader = HistogramLogReader(str(path), HdrHistogram(1, 3_600_000_000_000, 3))
    count = 0
    while (histogram := reader.get_next_interval_histogram()) is not None:
        cell = valid[count]
        assert histogram.get_total_count() == cell["received"], cell["peer"]
        p50 = cell["latency_ns"]["p50"]
        ratio = histogram.get_value_at_percentile(50) / p50
        assert abs(ratio - 1) < 5e-3, (cell["peer"], ratio)
        count += 1
    assert count == len(valid), (count, len(valid))
    return count


def main():
    directory = pathlib.Path(sys.argv[1])
    cells = json.loads((directory / "run.json").read_text())["cells"]
    samples = check_samples(directory / "samples.mcap", cells)
    histograms = check_histograms(directory / "latency.hlog", cells)
    print(f"{samples} samples and {histograms} histograms agree with run.json")


main()
