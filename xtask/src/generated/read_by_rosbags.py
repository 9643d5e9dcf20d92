"""Reads values as CDR by the package rosbags and writes them again: the bytes must be the same.

Arguments: a folder of packages, and a file of lines NAME SEED HEXADECIMAL. Says how many types rosbags could not be asked about,
and why: it knows no wstring and no member whose name is a keyword.
"""

import pathlib
import re
import sys
import warnings

from rosbags.typesys import Stores, get_types_from_msg, get_typestore

warnings.simplefilter("ignore")
FOLDER, LINES = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
STORE = get_typestore(Stores.EMPTY)
EMPTY = "builtin_interfaces/msg/Time", "builtin_interfaces/msg/Duration"
STORE.register({name: ([], [("sec", (1, ("int32", 0))), ("nanosec", (1, ("uint32", 0)))]) for name in EMPTY})


def register(text, name):
    if name in STORE.fielddefs:
        return
    package, _, last = name.split("/")
    try:
        # It knows no folder but msg.
        (defined,) = get_types_from_msg(text, f"{package}/msg/{last}").values()
        STORE.register({name: defined})
    except Exception as error:
        print(f"rosbags does not read {name}: {str(error).splitlines()[0]}")


def one(name):
    return 2, name


def most_one(name):
    return 4, ((2, name), 1)


def derive(name, **fields):
    """A type that no file holds, of types that files hold."""
    STORE.register({name: ([], list(fields.items()))})


def service(name):
    """Adds the types that ROS 2 derives from a request and a response."""
    info, request, response = "service_msgs/msg/ServiceEventInfo", f"{name}_Request", f"{name}_Response"
    derive(f"{name}_Event", info=one(info), request=most_one(request), response=most_one(response))
    derive(name, request_message=one(request), response_message=one(response), event_message=one(f"{name}_Event"))


BYTE, TIME = (1, ("uint8", 0)), one("builtin_interfaces/msg/Time")
UUID = "unique_identifier_msgs/msg/UUID"
derive(UUID, uuid=(3, (BYTE, 16)))
number = 1, ("int64", 0)
derive("service_msgs/msg/ServiceEventInfo", event_type=BYTE, stamp=TIME, client_gid=(3, (BYTE, 16)), sequence_number=number)
for package in sorted(FOLDER.iterdir()):
    for path in sorted(package.glob("msg/*.msg")):
        register(path.read_text(), f"{package.name}/msg/{path.stem}")
    for path in sorted(package.glob("srv/*.srv")) + sorted(package.glob("action/*.action")):
        name = f"{package.name}/{path.parent.name}/{path.stem}"
        is_service = path.suffix == ".srv"
        words = ["Request", "Response"] if is_service else ["Goal", "Result", "Feedback"]
        parts = re.split(r"^---.*$", path.read_text(), flags=re.MULTILINE)
        for word, part in zip(words, parts, strict=True):
            register(part, f"{name}_{word}")
        if is_service:
            service(name)
            continue
        derive(f"{name}_SendGoal_Request", goal_id=one(UUID), goal=one(f"{name}_Goal"))
        derive(f"{name}_SendGoal_Response", accepted=(1, ("bool", 0)), stamp=TIME)
        derive(f"{name}_GetResult_Request", goal_id=one(UUID))
        derive(f"{name}_GetResult_Response", status=(1, ("int8", 0)), result=one(f"{name}_Result"))
        derive(f"{name}_FeedbackMessage", goal_id=one(UUID), feedback=one(f"{name}_Feedback"))
        service(f"{name}_SendGoal")
        service(f"{name}_GetResult")
        parts = {word.lower(): one(f"{name}_{word}") for word in words}
        services = {"send_goal_service": one(f"{name}_SendGoal"), "get_result_service": one(f"{name}_GetResult")}
        derive(name, **parts, **services, feedback_message=one(f"{name}_FeedbackMessage"))

compared, types, others = 0, set(), {}
for line in LINES.read_text().splitlines():
    name, seed, digits = line.split()
    if "@" in name:
        continue
    if name in others:
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
    print(f"  {name}: {why}")
if compared == 0:
    sys.exit("rosbags could compare nothing")
