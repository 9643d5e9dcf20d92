"""One codec per format: two functions from a state (see state.py) to bytes and back, by the package most people use.

A package that is not installed is a format that is not offered. What is timed is the whole way from the program's
dictionaries to bytes and back, because that is what a program pays.
"""

import csv
import importlib
import io
import json
import pathlib
import re
import struct
import sys
import xml.etree.ElementTree as ElementTree

HERE = pathlib.Path(__file__).resolve().parent
SCHEMAS = HERE.parent.parent / "crates/formats/schemas"


def codecs():
    """(encode, decode, what does it) by format, for every format whose packages are there."""
    found = {}
    for name, make in MAKERS.items():
        try:
            found[name] = make()
        except (ImportError, OSError):
            continue
    return found


# — plain: struct and NumPy —

FIXED = struct.Struct("<Qq3d4d3d" + 4 * "2d2f" + 4 * "16sd" + "62f7B32s64sB")
CELLS, PARAMETERS, WAYPOINTS = 6, 4, 4


def plain():
    numpy = importlib.import_module("numpy")
    point = numpy.dtype([("x_m", "<f4"), ("y_m", "<f4"), ("z_m", "<f4"), ("intensity", "<f4")])

    def encode(state):
        points = state["points"]
        if not isinstance(points, numpy.ndarray):  # a NumPy program holds its points in an array
            points = state["points"] = numpy.array([tuple(p.values()) for p in points], dtype=point)
        return FIXED.pack(*fixed_fields(state)) + points.tobytes()

    def decode(data):
        state = fixed_state(FIXED.unpack_from(data))
        state["points"] = numpy.frombuffer(data, dtype=point, offset=FIXED.size)
        return state

    return encode, decode, "struct, numpy " + numpy.__version__


def fixed_fields(state):
    header, imu, battery, gps = (state[key] for key in ("header", "imu", "battery", "gps"))
    waypoints, parameters, cells = state["waypoints"], state["parameters"], battery["cells_v"]
    if len(waypoints) > WAYPOINTS or len(parameters) > PARAMETERS or len(cells) > CELLS:
        raise ValueError("the plain layout has room for %d waypoints, %d parameters, %d cells"
                         % (WAYPOINTS, PARAMETERS, CELLS))
    fields = [header["sequence"], header["stamp_ns"], *state["position_m"], *state["attitude"]]
    fields += [gps["latitude_deg"], gps["longitude_deg"], gps["altitude_m"]]
    for waypoint in waypoints:
        fields += waypoint.values()
    fields += [0.0] * (4 * (WAYPOINTS - len(waypoints)))
    for parameter in parameters:
        fields += [parameter["name"].encode(), parameter["value"]]
    fields += [b"", 0.0] * (PARAMETERS - len(parameters))
    fields += state["velocity_m_s"] + state["pose_covariance"] + state["velocity_covariance"]
    fields += imu["angular_velocity_rad_s"] + imu["acceleration_m_s2"] + [imu["temperature_c"]]
    fields += [battery["voltage_v"], battery["current_a"], battery["remaining"], *cells]
    fields += [0.0] * (CELLS - len(cells)) + [gps["horizontal_error_m"], gps["satellites"], gps["fix"]]
    fields += [state["armed"], state["mode"], len(cells), len(parameters), len(waypoints)]
    return fields + [header["frame_id"].encode(), state["status_text"].encode(), 0]


def fixed_state(fields):
    fields = list(fields)

    def take(count):
        taken, fields[:count] = fields[:count], []
        return taken

    def text(padded):
        return padded.rstrip(b"\0").decode()

    sequence, stamp_ns = take(2)
    position, attitude, gps = take(3), take(4), take(3)
    names = ("latitude_deg", "longitude_deg", "altitude_m", "speed_m_s")
    waypoints = [dict(zip(names, take(4))) for _ in range(WAYPOINTS)]
    parameters = [dict(zip(("name", "value"), take(2))) for _ in range(PARAMETERS)]
    velocity, pose_covariance, velocity_covariance = take(3), take(21), take(21)
    angular, acceleration, (temperature, voltage, current, remaining) = take(3), take(3), take(4)
    cells, (error, satellites, fix, armed, mode) = take(CELLS), take(5)
    cell_count, parameter_count, waypoint_count, frame_id, status_text, _ = take(6)
    for parameter in parameters:
        parameter["name"] = text(parameter["name"])
    return {
        "header": {"sequence": sequence, "stamp_ns": stamp_ns, "frame_id": text(frame_id)},
        "position_m": position,
        "attitude": attitude,
        "velocity_m_s": velocity,
        "pose_covariance": pose_covariance,
        "velocity_covariance": velocity_covariance,
        "imu": {"angular_velocity_rad_s": angular, "acceleration_m_s2": acceleration, "temperature_c": temperature},
        "battery": {"voltage_v": voltage, "current_a": current, "remaining": remaining, "cells_v": cells[:cell_count]},
        "gps": {"latitude_deg": gps[0], "longitude_deg": gps[1], "altitude_m": gps[2],
                "horizontal_error_m": error, "satellites": satellites, "fix": fix},
        "armed": bool(armed),
        "mode": mode,
        "status_text": text(status_text),
        "parameters": parameters[:parameter_count],
        "waypoints": waypoints[:waypoint_count],
    }


# — formats that take dictionaries —


def msgpack():
    package = importlib.import_module("msgpack")
    return package.packb, package.unpackb, "msgpack " + ".".join(map(str, package.version))


def cbor():
    package = importlib.import_module("cbor2")
    return package.dumps, package.loads, "cbor2 " + importlib.import_module("importlib.metadata").version("cbor2")


def bson():
    package = importlib.import_module("bson")
    version = importlib.import_module("pymongo").version
    return package.encode, package.decode, "bson of pymongo " + version


def json_of_python():
    return (lambda state: json.dumps(state, separators=(",", ":")).encode()), json.loads, "json of Python"


def orjson():
    package = importlib.import_module("orjson")
    return package.dumps, package.loads, "orjson " + package.__version__


def yaml():
    """With libyaml, as PyYAML's manual advises."""
    package = importlib.import_module("yaml")
    if not package.__with_libyaml__:
        raise ImportError("PyYAML without libyaml")

    def encode(state):
        return package.dump(state, Dumper=package.CSafeDumper, sort_keys=False).encode()

    return encode, (lambda data: package.load(data, Loader=package.CSafeLoader)), "PyYAML %s, libyaml" % package.__version__


def yaml_pure():
    """As most programs call it: without libyaml."""
    package = importlib.import_module("yaml")

    def encode(state):
        return package.safe_dump(state, sort_keys=False).encode()

    return encode, package.safe_load, "PyYAML %s, pure Python" % package.__version__


# — formats without types of their own: the schema says how to read the text —


def shape():
    """Types of all fields by message, from the Protobuf schema: [(name, type, repeated)]."""
    text = re.sub(r"//.*", "", (SCHEMAS / "uav_state.proto").read_text())
    field = re.compile(r"(repeated\s+)?(\w+)\s+(\w+)\s*=\s*(\d+)\s*;")
    return {
        message: [(name, kind, bool(many), int(tag)) for many, kind, name, tag in field.findall(body)]
        for message, body in re.findall(r"message\s+(\w+)\s*\{(.*?)\}", text, re.S)
    }


ARRAYS = {"position_m", "attitude", "velocity_m_s", "pose_covariance", "velocity_covariance",
          "angular_velocity_rad_s", "acceleration_m_s2"}
ARRAY_LENGTHS = {"position_m": 3, "attitude": 4, "velocity_m_s": 3, "pose_covariance": 21,
                 "velocity_covariance": 21, "angular_velocity_rad_s": 3, "acceleration_m_s2": 3}
SCALARS = {"float": float, "double": float, "uint32": int, "uint64": int, "sfixed64": int, "string": str,
           "bool": lambda text: text == "true"}


def csv_of_python():
    """One row, values in the order of the definition, a count before what varies in length."""
    messages = shape()

    def flatten(message, value, row):
        for name, kind, many, _ in messages[message]:
            values = value[name] if many else [value[name]]
            if many and name not in ARRAYS:
                row.append(len(values))
            for each in values:
                if kind in messages:
                    flatten(kind, each, row)
                else:
                    row.append(("true" if each else "false") if kind == "bool" else each)

    def gather(message, row):
        value = {}
        for name, kind, many, _ in messages[message]:
            count = ARRAY_LENGTHS.get(name) or (int(next(row)) if many else 1)
            one = (lambda kind=kind: gather(kind, row)) if kind in messages else (lambda kind=kind: SCALARS[kind](next(row)))
            values = [one() for _ in range(count)]
            value[name] = values if many else values[0]
        return value

    def encode(state):
        row = []
        flatten("UavState", state, row)
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerow(row)
        return text.getvalue().encode()

    def decode(data):
        return gather("UavState", iter(next(csv.reader(io.StringIO(data.decode(), newline="")))))

    return encode, decode, "csv of Python"


csv.field_size_limit(1 << 24)


def xml():
    """Every field an element, every element of a list an element of the list's name."""
    messages = shape()

    def build(parent, message, value):
        for name, kind, many, _ in messages[message]:
            for each in value[name] if many else [value[name]]:
                element = ElementTree.SubElement(parent, name)
                if kind in messages:
                    build(element, kind, each)
                else:
                    element.text = ("true" if each else "false") if kind == "bool" else str(each)

    def gather(parent, message):
        found = {}
        for child in parent:
            found.setdefault(child.tag, []).append(child)
        value = {}
        for name, kind, many, _ in messages[message]:
            read = (lambda child, kind=kind: gather(child, kind)) if kind in messages else (
                lambda child, kind=kind: SCALARS[kind](child.text or ""))
            values = [read(child) for child in found.get(name, ())]
            value[name] = values if many else values[0]
        return value

    def encode(state):
        root = ElementTree.Element("message")
        build(root, "UavState", state)
        return ElementTree.tostring(root)

    return encode, (lambda data: gather(ElementTree.fromstring(data), "UavState")), "xml.etree of Python"


# — formats with schemas —


def protobuf():
    """The message class is made from crates/formats/schemas/uav_state.proto when the program starts."""
    descriptor_pb2 = importlib.import_module("google.protobuf.descriptor_pb2")
    pool = importlib.import_module("google.protobuf.descriptor_pool").DescriptorPool()
    factory = importlib.import_module("google.protobuf.message_factory")
    messages = shape()
    file = descriptor_pb2.FileDescriptorProto(name="uav_state.proto", package="uav", syntax="proto3")
    for message, fields in messages.items():
        described = file.message_type.add(name=message)
        for name, kind, many, tag in fields:
            field = described.field.add(name=name, number=tag, label=3 if many else 1)
            if kind in messages:
                field.type, field.type_name = field.TYPE_MESSAGE, ".uav." + kind
            else:
                field.type = getattr(field, "TYPE_" + kind.upper())
    pool.Add(file)
    uav_state = factory.GetMessageClass(pool.FindMessageTypeByName("uav.UavState"))

    def gather(message, value):
        read = {}
        for name, kind, many, _ in messages[message]:
            field = getattr(value, name)
            if kind in messages:
                read[name] = [gather(kind, each) for each in field] if many else gather(kind, field)
            else:
                read[name] = list(field) if many else field
        return read

    version = importlib.import_module("google.protobuf").__version__
    return (lambda state: uav_state(**state).SerializeToString(),
            lambda data: gather("UavState", uav_state.FromString(data)), "protobuf " + version)


def flatbuffers():
    """Through the classes that `flatc --python --gen-object-api` made (see peer.toml)."""
    package = importlib.import_module("flatbuffers")
    importlib.import_module("numpy")
    sys.path.insert(0, str(HERE / "build"))
    classes = {name: importlib.import_module("uav." + name) for name in (*shape(),)}
    messages = shape()

    def build(message, value):
        built = getattr(classes[message], message + "T")()
        for name, kind, many, _ in messages[message]:
            field = value[name]
            if kind in messages:
                field = [build(kind, each) for each in field] if many else build(kind, field)
            setattr(built, camel(name), field)
        return built

    def gather(message, value):
        read = {}
        for name, kind, many, _ in messages[message]:
            field = getattr(value, camel(name))
            if kind in messages:
                read[name] = [gather(kind, each) for each in field or ()] if many else gather(kind, field)
            elif many:
                read[name] = [] if field is None else list(map(float, field))
            else:
                read[name] = field.decode() if isinstance(field, bytes) else field
        return read

    def encode(state):
        builder = package.Builder(1 << 16)
        builder.Finish(build("UavState", state).Pack(builder))
        return bytes(builder.Output())

    def decode(data):
        root = classes["UavState"].UavState.GetRootAs(data, 0)
        return gather("UavState", classes["UavState"].UavStateT.InitFromObj(root))

    version = importlib.import_module("importlib.metadata").version("flatbuffers")
    return encode, decode, "flatbuffers " + version


def camel(name):
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


MAKERS = {
    "plain": plain,
    "msgpack": msgpack,
    "protobuf": protobuf,
    "flatbuffers": flatbuffers,
    "bson": bson,
    "json": json_of_python,
    "orjson": orjson,
    "yaml": yaml,
    "yaml_pure": yaml_pure,
    "csv": csv_of_python,
    "xml": xml,
    "cbor": cbor,
}
