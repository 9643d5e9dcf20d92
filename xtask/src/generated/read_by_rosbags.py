"""Reads values as CDR by the package rosbags and writes them again: the bytes must be the same.

Arguments: a folder of packages, and a file of lines NAME SEED HEXADECIMAL. Says how many types rosbags could not be asked about,
and why: it knows no wstring and no member whose name is a keyword.
"""

import pathlib
import sys
import warnings

from rosbags.typesys import Stores, get_types_from_msg, get_typestore

warnings.simplefilter("ignore")
FOLDER, LINES = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
STORE = get_typestore(Stores.EMPTY)
EMPTY = "builtin_interfaces/msg/Time", "builtin_interfaces/msg/Duration"
STORE.register({name: ([], [("sec", (1, ("int32", 0))), ("nanosec", (1, ("uint32", 0)))]) for name in EMPTY})
for package in sorted(FOLDER.iterdir()):
    for path in sorted(package.glob("msg/*.msg")):
        name = f"{package.name}/msg/{path.stem}"
        if name in STORE.fielddefs:
            continue
        try:
            STORE.register(get_types_from_msg(path.read_text(), name))
        except Exception as error:
            print(f"rosbags does not read {name}: {str(error).splitlines()[0]}")

compared, types, others = 0, set(), {}
for line in LINES.read_text().splitlines():
    name, seed, digits = line.split()
    if name.endswith("@plain"):
        continue
    if "/msg/" not in name or name in others:
        others.setdefault(name, "services and actions")
        continue
    cdr = bytes.fromhex(digits)
    try:
        value = STORE.deserialize_cdr(cdr, name)
        again = bytes(STORE.serialize_cdr(value, name))
    except (KeyError, SyntaxError, AttributeError) as error:
        others[name] = f"{type(error).__name__} {error}"
        continue
    except Exception as error:
        sys.exit(f"rosbags refuses {name} of seed {seed}: {type(error).__name__} {error}: {digits}")
    # It pads no message to a multiple of four, and neither do we.
    if again != cdr:
        sys.exit(f"rosbags writes {name} of seed {seed} as {again.hex()}, and not {digits}")
    compared += 1
    types.add(name)
print(f"rosbags reads and writes {compared} values of {len(types)} types alike; {len(others)} types were not compared")
for name, why in others.items():
    if why != "services and actions":
        print(f"  {name}: {why}")
if compared == 0:
    sys.exit("rosbags could compare nothing")
