#!/usr/bin/env python3
"""Writes our figures beside the papers' cells: the tables between the marks of README.md, from finished runs.

    benchmarks/papers/table.py FOLDER…      each with a run.json of papers_middlewares, papers_transports or formats

A table whose run is not among them stays as it is.
"""

import json
import pathlib
import re
import statistics
import sys

PAGE = pathlib.Path(__file__).with_name("README.md")
# The paper's word for a format, and the peer's in Python.
FORMATS = {"CSV": "csv", "JSON": "json", "YAML": "yaml", "BSON": "bson", "MsgPack": "msgpack", "Protobuf": "protobuf"}
SIZES = {1024: "1 KB", 5120: "5 KB", 1_048_576: "1 MB"}


def time_text(ns):
    """Three digits, in the unit that fits."""
    if ns is None:
        return "–"
    for unit, length_ns in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= length_ns:
            return "%.3g %s" % (ns / length_ns, unit)
    return "%.3g ns" % ns


def valid(cells):
    return [cell for cell in cells if cell["valid"] and cell.get("latency_ns")]


def median_of(cells, *path):
    """The median over trials of one figure; None if no trial has it."""
    values = []
    for cell in cells:
        for key in path:
            cell = (cell or {}).get(key)
        if cell is not None:
            values.append(cell)
    return statistics.median(values) if values else None


def grouped(cells, key):
    groups = {}
    for cell in cells:
        groups.setdefault(key(cell), []).append(cell)
    return groups


def middlewares(run):
    def key(cell):
        options = "".join(" %s=%s" % pair for pair in sorted(cell["options"].items()) if pair[0] == "qos")
        return cell["peer"] + options, cell["link"], cell["wait"]

    yield "| middleware | link | wait | 1 KB: p50 | p99 | × floor | 5 KB: p50 | p99 | × floor |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for (name, link, wait), cells in sorted(grouped(valid(run["cells"]), key).items()):
        row = []
        for size in (1024, 5120):
            these = [cell for cell in cells if cell["payload_bytes"] in ((size, 200) if size == 1024 else (size,))]
            ratio = median_of(these, "ratio_to_floor")
            row += [time_text(median_of(these, "latency_ns", "p50")), time_text(median_of(these, "latency_ns", "p99")),
                    "floor" if these and these[0]["is_floor"] else "–" if ratio is None else "%.2f" % ratio]
        small = " (200 B)" if cells[0]["payload_bytes"] == 200 else ""
        yield "| %s%s | %s | %s | %s |" % (name, small, link, wait, " | ".join(row))


def transports(run):
    yield "| transport | bytes | lost | within 60 ms | p50 | p99 | largest | wire per payload |"
    yield "|---|---|---|---|---|---|---|---|"

    def key(cell):
        return cell["peer"] + "".join(" %s=%s" % pair for pair in sorted(cell["options"].items())), cell["payload_bytes"]

    for (name, size), cells in sorted(grouped(run["cells"], key).items()):
        good = valid(cells)
        if not good:
            yield "| %s | %d | not valid: %s ||||||" % (name, size, "; ".join(cells[0]["why_invalid"])[:120])
            continue
        sent = sum(cell["sent"] for cell in good)
        lost = sum(cell["lost"] for cell in good)
        in_time = sent - lost - sum(cell["late"] for cell in good)
        wire = [cell["wire_bytes"] / (cell["payload_bytes"] * (cell["sent"] + cell["warm_up_sent"]))
                for cell in good if cell.get("wire_bytes") and cell.get("warm_up_sent") is not None]
        figures = [time_text(median_of(good, "latency_ns", name)) for name in ("p50", "p99", "max")]
        yield "| %s | %d | %.2f %% | %.2f %% | %s | %s |" % (
            name, size, 100 * lost / sent, 100 * in_time / sent, " | ".join(figures),
            "%.2f" % statistics.median(wire) if wire else "–")


def formats(run):
    published = {(entry["format"], entry["payload_bytes"], entry["fact"]): entry["value"]
                 for entry in run["scenario"].get("published", []) if entry.get("fact")}
    cells = {(cell["peer"], cell["format"], cell["payload_bytes"]): [] for cell in run["cells"]}
    for cell in valid(run["cells"]):
        cells[cell["peer"], cell["format"], cell["payload_bytes"]].append(cell)
    yield "| format | data | what | the paper | ours, Python | ours, Rust |"
    yield "|---|---|---|---|---|---|"
    for word, name in FORMATS.items():
        for size, text in SIZES.items():
            for fact, what in (("encode_ns", "serialization"), ("decode_ns", "deserialization"), ("transfer_ns", "transfer")):
                ours = [time_text(median_of(cells.get((peer, name, size), []), "facts", fact))
                        for peer in ("formats_python", "formats_rust")]
                yield "| %s | %s | %s | %s | %s |" % (word, text, what, published.get((name, size, fact), "–"), " | ".join(ours))


TABLES = {"papers_middlewares": middlewares, "papers_transports": transports, "formats": formats}


def main():
    if len(sys.argv) < 2:
        sys.exit("table.py takes the folders of finished runs, such as out/papers_middlewares")
    page = PAGE.read_text()
    for folder in map(pathlib.Path, sys.argv[1:]):
        run = json.loads((folder / "run.json").read_text())
        name = run["scenario"]["name"]
        if name not in TABLES:
            sys.exit("%s is a run of %s, of which the page has no table" % (folder, name))
        host = run["host"]
        of = "Run of %s, commit %s, %s." % (host["started_at"], host["commit"], host["cpu"])
        table = "\n".join(["", of, "", *TABLES[name](run), ""])
        mark = "<!-- %s -->" % name
        parts = page.split(mark)
        if len(parts) != 3:
            sys.exit("README.md does not have the mark %s twice" % mark)
        page = parts[0] + mark + "\n" + table + "\n" + mark + parts[2]
    PAGE.write_text(re.sub(r"\n{3,}", "\n\n", page))


if __name__ == "__main__":
    main()
