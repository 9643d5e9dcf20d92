"""Definitions of ROS 2's standard messages, and values of each with their CDR, by the package rosbags.

Writes FOLDER/PACKAGE/msg/NAME.msg for every type, and one JSON object per line to standard output: type, value, and CDR as
hexadecimal digits. The seed is an argument. Values are finite, because JSON has no other numbers.
"""

import json
import pathlib
import random
import struct
import sys

import numpy as np
from rosbags.interfaces import Nodetype
from rosbags.typesys import Stores, get_typestore

FOLDER, SEED, VALUES = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
STORE = get_typestore(Stores.ROS2_JAZZY)
RANDOM = random.Random(SEED)
RANGES = {f"{sign}int{bits}": (0 if sign else -(1 << bits - 1), (1 << bits - (0 if sign else 1)) - 1)
          for sign in ("", "u") for bits in (8, 16, 32, 64)}  # fmt: skip
# Of one byte, rosbags writes only those that are the same signed and unsigned.
RANGES["byte"] = RANGES["char"] = (0, 127)
CODES = {"int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2", "int32": "i4", "uint32": "u4", "int64": "i8",
         "uint64": "u8", "float32": "f4", "float64": "f8", "bool": "?", "byte": "u1", "char": "u1"}  # fmt: skip


def primitive(name, bound):
    if name == "string":
        text = "".join(RANDOM.choice("abc é€😀\"\\\n") for _ in range(RANDOM.randrange(8)))
        return text.encode()[:bound].decode(errors="ignore") if bound else text
    if name == "bool":
        return RANDOM.random() < 0.5
    if name == "float32":
        return struct.unpack("<f", struct.pack("<f", RANDOM.uniform(-1e6, 1e6)))[0]
    if name == "float64":
        return RANDOM.choice([0.0, -0.0, 1e300, 5e-324, RANDOM.uniform(-1, 1)])
    low, high = RANGES[name]
    return RANDOM.choice([low, high, 0, RANDOM.randint(low, high)])


def one(description):
    """A value as rosbags wants it, and as JSON."""
    kind, detail = description
    if kind == Nodetype.NAME:
        return message(detail)
    if kind == Nodetype.BASE:
        value = primitive(*detail)
        return value, value
    element, size = detail
    length = size if kind == Nodetype.ARRAY else RANDOM.randrange(min(size or 4, 4) + 1)
    values = [one(element) for _ in range(length)]
    tree = [value[1] for value in values]
    if element[0] == Nodetype.BASE and element[1][0] in CODES:
        return np.array(tree, dtype=CODES[element[1][0]]), tree
    return [value[0] for value in values], tree


def message(name):
    fields = {field: one(description) for field, description in STORE.fielddefs[name][1]}
    return STORE.types[name](**{k: v[0] for k, v in fields.items()}), {k: v[1] for k, v in fields.items()}


for name in sorted(STORE.fielddefs):
    package, _, short = name.split("/")
    text, _ = STORE.generate_msgdef(name, ros_version=2)
    path = FOLDER / package / "msg" / f"{short}.msg"
    path.parent.mkdir(parents=True, exist_ok=True)
    own = text.split("=" * 80)[0]
    path.write_text(own.replace("structure_needs_at_least_one_member", "empty"))
    for _ in range(VALUES):
        value, tree = message(name)
        cdr = bytes(STORE.serialize_cdr(value, name))
        print(json.dumps({"type": name, "value": tree, "cdr": cdr.hex()}))
