"""Holds what `noctule record --check` says of other recorders' files, and our conversion of a PX4 log, against their own readers."""

import json
import pathlib
import subprocess
import sys

from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory


def run(program, *words):
    return subprocess.run([program, *words], capture_output=True, text=True)


def check(program, path, topics):
    output = run(program, "record", "--json", "--check", path)
    assert output.returncode == 0, (path, output.stderr)
    found = {topic["topic"]: topic for topic in json.loads(output.stdout)["topics"]}
    assert set(found) == set(topics), (path, set(found), set(topics))
    for name, expected in topics.items():
        for key, value in expected.items():
            assert key == "values" or found[name][key] == value, (path, name, key, found[name][key], value)


def check_ages(program, path, topics):
    """Counts of `noctule top FILE`, and the ages that the stamps in the messages were made with."""
    output = run(program, "top", path, "--json")
    assert output.returncode == 0, (path, output.stderr)
    found = {topic["topic"]: topic for topic in json.loads(output.stdout)["topics"]}
    for name, expected in topics.items():
        assert found[name]["received"] == expected["messages"], (path, name)
        if name == "/imu":
            ages = found[name]["age_ns"]
            assert (ages["min"], ages["max"]) == (1_000_000, 1_000_000 + 499 * 2_000_000 // 500), (path, ages)
        elif name == "/vehicle_attitude":
            ages = found[name]["age_ns"]
            assert (ages["min"], ages["max"]) == (300_000, 699_000), (path, ages)


def flat(value, name, into):
    """`q[0]`, `esc[1].rpm[2]`, as pyulog names fields."""
    if hasattr(value, "__slots__"):
        for field in value.__slots__:
            flat(getattr(value, field), f"{name}.{field}" if name else field, into)
    elif isinstance(value, (list, tuple, bytes)):
        for index, element in enumerate(value):
            flat(element, f"{name}[{index}]", into)
    else:
        into.setdefault(name, []).append(float(value))


def check_values(converted, topics):
    values = {name: {} for name in topics}
    with open(converted, "rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        for _, channel, _, message in reader.iter_decoded_messages():
            flat(message, "", values[channel.topic])
    count = 0
    for name, expected in topics.items():
        assert values[name] == expected["values"], (name, values[name].keys(), expected["values"].keys())
        count += sum(map(len, expected["values"].values()))
    return count


def main():
    program, convert, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    made = json.loads((folder / "expected.json").read_text())
    for path, topics in made["files"].items():
        check(program, path, topics)
        check_ages(program, path, topics)
    log = str(folder / "flight.ulg")
    converted = str(folder / "flight.mcap")
    output = run(convert, log, converted)
    assert output.returncode == 0, output.stderr
    values = check_values(converted, made["files"][log])
    print(f"{len(made['files'])} files of other recorders agree with their own readers, {values} values of PX4's log among them")


main()
