"""Typed topics: dataclasses as samples, by the definitions and bytes of ``docs/spec/formats.md``.

Use these names from :mod:`noctule`. A dataclass says exactly what it is made of, so that its name and the hash of its
definition are those of the same type in Rust::

    @noctule.message("demo/Pose")
    class Pose:
        position_m: Annotated[list[noctule.f64], 3]  # an array: always three
        frame: str
        points: NDArray[np.float32]  # a sequence, as an array of NumPy

Fields are ``bool``, ``str``, the numbers ``i8`` to ``u64``, ``f32`` and ``f64``, other messages, ``list`` of those, and arrays of
NumPy; ``Annotated[..., n]`` is an array of fixed length, ``Annotated[..., noctule.bound(n)]`` a list or a text of at most n, and
``Annotated[..., noctule.name("from")]`` a field whose name Python does not allow.
"""

import dataclasses
import json
import struct
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any, TypeVar, dataclass_transform, get_args, get_origin, get_type_hints

import numpy as np

i8 = Annotated[int, "i8"]
i16 = Annotated[int, "i16"]
i32 = Annotated[int, "i32"]
i64 = Annotated[int, "i64"]
u8 = Annotated[int, "u8"]
u16 = Annotated[int, "u16"]
u32 = Annotated[int, "u32"]
u64 = Annotated[int, "u64"]
f32 = Annotated[float, "f32"]
f64 = Annotated[float, "f64"]

T = TypeVar("T")

_CODES = {
    "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I", "u64": "Q", "f32": "f", "f64": "d",
}  # fmt: skip
_NUMPY = {np.dtype(code).name: name for name, code in _CODES.items()}


def _hash(*parts: bytes) -> int:
    """FNV-1a with 64 bits, never 0."""
    value = 0xCBF29CE484222325
    for byte in b"".join(parts):
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value or 1


def _name(text: str) -> bytes:
    return text.encode() + b"\0"


def _word(value: int) -> bytes:
    return value.to_bytes(8, "little")


@dataclasses.dataclass(frozen=True)
class bound:
    """The greatest length of a list, in elements, or of a text, in bytes: ``Annotated[str, noctule.bound(16)]``."""

    length: int


@dataclasses.dataclass(frozen=True)
class name:
    """The name of a field in the definition: ``from_: Annotated[noctule.f32, noctule.name("from")]``."""

    text: str


class _Wrong(Exception):
    """Why bytes are no value, or a value no bytes."""


class _Reader:
    """CDR after its header."""

    def __init__(self, body: bytes, order: str) -> None:
        self.body, self.order, self.at = body, order, 0

    def take(self, length: int, alignment: int = 1) -> bytes:
        start = self.at + -self.at % alignment
        if length > len(self.body) - start:
            raise _Wrong("it ends in the middle of a value")
        self.at = start + length
        return self.body[start : self.at]

    def count(self) -> int:
        (count,) = struct.unpack(self.order + "I", self.take(4, 4))
        return int(count)


class _Kind:
    """Type of a field."""

    hash: int
    # Size in memory and alignment, if it is its own encoding.
    plain: tuple[int, int] | None = None

    def describe(self, types: dict[str, str]) -> str:
        """The type's word in a description; structs add themselves to ``types``."""
        raise NotImplementedError

    def write(self, out: bytearray, value: Any) -> None:
        raise NotImplementedError

    def read(self, reader: _Reader) -> Any:
        raise NotImplementedError

    def tree(self, value: Any) -> Any:
        """As numbers, texts, lists and dictionaries."""
        return value

    def of_tree(self, tree: Any) -> Any:
        raise NotImplementedError


class _Number(_Kind):
    def __init__(self, name: str) -> None:
        self.name, self.code = name, _CODES[name]
        self.size = struct.calcsize("<" + self.code)
        self.hash = _hash(_name(name))
        self.plain = (self.size, self.size)

    def describe(self, types: dict[str, str]) -> str:
        return {"u": "uint", "i": "int", "f": "float"}[self.name[0]] + self.name[1:]

    def write(self, out: bytearray, value: Any) -> None:
        out.extend(bytes(-len(out) % self.size))
        try:
            out.extend(struct.pack("<" + self.code, value))
        except (struct.error, OverflowError) as error:
            raise _Wrong(f"{value!r} is no {self.name}") from error

    def read(self, reader: _Reader) -> Any:
        return struct.unpack(reader.order + self.code, reader.take(self.size, self.size))[0]

    def tree(self, value: Any) -> Any:
        return float(value) if self.name[0] == "f" else int(value)

    def of_tree(self, tree: Any) -> Any:
        if isinstance(tree, bool) or not isinstance(tree, (int, float)):
            raise _Wrong(f"{tree!r} is no {self.name}")
        if self.name[0] == "f":
            return float(tree)
        bits = self.size * 8
        least = -(1 << bits - 1) if self.name[0] == "i" else 0
        if not isinstance(tree, int) or not least <= tree < least + (1 << bits):
            raise _Wrong(f"{tree!r} is no {self.name}")
        return tree


class _Bool(_Kind):
    hash = _hash(_name("bool"))
    plain = (1, 1)

    def describe(self, types: dict[str, str]) -> str:
        return "bool"

    def write(self, out: bytearray, value: Any) -> None:
        out.append(bool(value))

    def read(self, reader: _Reader) -> bool:
        (byte,) = reader.take(1)
        if byte > 1:
            raise _Wrong(f"{byte} is no bool")
        return bool(byte)

    def of_tree(self, tree: Any) -> bool:
        if not isinstance(tree, bool):
            raise _Wrong(f"{tree!r} is no bool")
        return tree


class _Text(_Kind):
    _count = _Number("u32")

    def __init__(self, bound: int = 0) -> None:
        self.bound = bound
        self.hash = _hash(_name("string"), _word(bound) if bound else b"")

    def describe(self, types: dict[str, str]) -> str:
        return f"string<={self.bound}" if self.bound else "string"

    def _check(self, length: int) -> None:
        if self.bound and length > self.bound:
            raise _Wrong(f"a text has {length} bytes and may have {self.bound}")

    def write(self, out: bytearray, value: Any) -> None:
        text = str(value).encode()
        self._check(len(text))
        if b"\0" in text:
            raise _Wrong("a text contains NUL, which ends texts here")
        self._count.write(out, len(text) + 1)
        out.extend(text + b"\0")

    def read(self, reader: _Reader) -> str:
        text = reader.take(reader.count())
        if text and (text[-1] or 0 in text[:-1]):
            raise _Wrong("a text does not end with its only NUL")
        self._check(max(len(text) - 1, 0))
        try:
            return text[:-1].decode()
        except UnicodeDecodeError as error:
            raise _Wrong("a text is not UTF-8") from error

    def of_tree(self, tree: Any) -> str:
        if not isinstance(tree, str):
            raise _Wrong(f"{tree!r} is no text")
        self._check(len(tree.encode()))
        return tree


class _Many(_Kind):
    """A sequence, or with a length an array; of numbers, it may be one of NumPy."""

    _count = _Number("u32")

    def __init__(self, element: _Kind, length: int | None, is_numpy: bool, bound: int = 0) -> None:
        self.element, self.length, self.is_numpy, self.bound = element, length, is_numpy, bound
        kind = "sequence" if length is None else "array"
        self.hash = _hash(_name(kind), _word(element.hash), _word(length or bound))
        if length is not None and element.plain:
            self.plain = (element.plain[0] * length, element.plain[1])

    def describe(self, types: dict[str, str]) -> str:
        shape = self.length or (f"<={self.bound}" if self.bound else "")
        return f"{self.element.describe(types)}[{shape}]"

    def write(self, out: bytearray, value: Any) -> None:
        self._check(len(value))
        if self.length is None:
            self._count.write(out, len(value))
        if isinstance(self.element, _Number) and len(value):
            numbers = np.asarray(value)
            if self.is_numpy or numbers.dtype.kind in "iuf":
                out.extend(bytes(-len(out) % self.element.size))
                wanted = np.dtype("<" + self.element.code)
                if numbers.dtype.kind == "f" and wanted.kind != "f":
                    raise _Wrong(f"{numbers.dtype} is no {self.element.name}")
                if wanted.kind != "f":
                    limits = np.iinfo(wanted)
                    if int(numbers.min()) < limits.min or int(numbers.max()) > limits.max:
                        raise _Wrong(f"a number does not fit {self.element.name}")
                out.extend(numbers.astype(wanted).tobytes())
                return
        for one in value:
            self.element.write(out, one)

    def read(self, reader: _Reader) -> Any:
        count = reader.count() if self.length is None else self.length
        self._check(count)
        if isinstance(self.element, _Number):
            size = self.element.size
            taken = reader.take(count * size, size) if count else b""
            numbers = np.frombuffer(taken, reader.order + self.element.code)
            return numbers.astype(self.element.code) if self.is_numpy else numbers.tolist()
        # Every element takes a byte at least, so the announced count is not trusted.
        if count > len(reader.body):
            raise _Wrong("it ends in the middle of a value")
        return [self.element.read(reader) for _ in range(count)]

    def tree(self, value: Any) -> Any:
        self._check(len(value))
        return [self.element.tree(one) for one in (value.tolist() if isinstance(value, np.ndarray) else value)]

    def of_tree(self, tree: Any) -> Any:
        if not isinstance(tree, (list, tuple)):
            raise _Wrong(f"{tree!r} is no list")
        self._check(len(tree))
        values = [self.element.of_tree(one) for one in tree]
        if self.is_numpy and isinstance(self.element, _Number):
            return np.array(values, self.element.code)
        return values

    def _check(self, length: int) -> None:
        if self.length is not None and length != self.length:
            raise _Wrong(f"an array has {length} elements and not {self.length}")
        if self.bound and length > self.bound:
            raise _Wrong(f"a list has {length} elements and may have {self.bound}")


class _Struct(_Kind):
    def __init__(self, cls: type, type_name: str) -> None:
        hints = get_type_hints(cls, include_extras=True)
        self.cls, self.type_name = cls, type_name
        self.fields = {field.name: _kind(hints[field.name], field.name) for field in dataclasses.fields(cls)}
        # Names as the definition has them, by those that Python has.
        self.names = {field: _given_name(hints[field]) or field for field in self.fields}
        parts = [_name(self.names[field]) + _word(kind.hash) for field, kind in self.fields.items()]
        self.hash = _hash(_name(type_name), *parts)
        self.plain = self._plain()

    def describe(self, types: dict[str, str]) -> str:
        if self.type_name not in types:
            types[self.type_name] = ""
            fields = [f" {kind.describe(types)} {self.names[field]}\n" for field, kind in self.fields.items()]
            types[self.type_name] = f"struct {self.type_name}\n{''.join(fields)}"
        return self.type_name

    def _plain(self) -> tuple[int, int] | None:
        """The layout of C; its padding is computed where a value is written or read."""
        size, alignment = 0, 1
        for kind in self.fields.values():
            if kind.plain is None:
                return None
            size += -size % kind.plain[1] + kind.plain[0]
            alignment = max(alignment, kind.plain[1])
        return (size + -size % alignment, alignment) if size else None

    def dtype(self) -> np.dtype[np.void]:
        """The layout for NumPy, whose fields have the names of the definition."""
        names, formats, offsets, size = [], [], [], 0
        for field, kind in self.fields.items():
            assert kind.plain is not None
            size += -size % kind.plain[1]
            names.append(self.names[field])
            formats.append(_numpy_format(kind))
            offsets.append(size)
            size += kind.plain[0]
        itemsize = self.plain[0] if self.plain else size
        return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": itemsize})

    def to_record(self, value: Any) -> tuple[Any, ...]:
        return tuple(_to_record(kind, getattr(value, field)) for field, kind in self.fields.items())

    def of_record(self, record: Any) -> Any:
        return self.cls(**{field: _of_record(kind, record[self.names[field]]) for field, kind in self.fields.items()})

    def write(self, out: bytearray, value: Any) -> None:
        for name, kind in self.fields.items():
            kind.write(out, getattr(value, name))

    def read(self, reader: _Reader) -> Any:
        return self.cls(**{name: kind.read(reader) for name, kind in self.fields.items()})

    def tree(self, value: Any) -> Any:
        return {self.names[field]: kind.tree(getattr(value, field)) for field, kind in self.fields.items()}

    def of_tree(self, tree: Any) -> Any:
        if not isinstance(tree, dict):
            raise _Wrong(f"{tree!r} is no {self.type_name}")
        missing = set(self.names.values()) - tree.keys()
        if missing:
            raise _Wrong(f"{self.type_name} lacks {', '.join(sorted(missing))}")
        return self.cls(**{field: kind.of_tree(tree[self.names[field]]) for field, kind in self.fields.items()})


def _numpy_format(kind: _Kind) -> Any:
    """A plain kind as NumPy writes it."""
    if isinstance(kind, _Number):
        return "<" + kind.code
    if isinstance(kind, _Many):
        return (_numpy_format(kind.element), (kind.length,))
    return kind.dtype() if isinstance(kind, _Struct) else "u1"


def _to_record(kind: _Kind, value: Any) -> Any:
    """A plain value as NumPy takes it, checked as in the other formats."""
    if isinstance(kind, _Struct):
        return kind.to_record(value)
    if isinstance(kind, _Many):
        kind._check(len(value))
        if not isinstance(kind.element, _Number):
            return [_to_record(kind.element, one) for one in value]
    out = bytearray()
    kind.write(out, value)
    body = np.frombuffer(bytes(out), _numpy_format(kind))
    return body[0]


def _of_record(kind: _Kind, record: Any) -> Any:
    if isinstance(kind, _Struct):
        return kind.of_record(record)
    if isinstance(kind, _Many):
        if isinstance(kind.element, _Number):
            return np.array(record) if kind.is_numpy else record.tolist()
        return [_of_record(kind.element, one) for one in record]
    if isinstance(kind, _Bool):
        # Rust and C read every byte but 0 as true; the layout has no forbidden bit patterns.
        return bool(record)
    return record.item()


def _given_name(hint: Any) -> str | None:
    given = [part.text for part in getattr(hint, "__metadata__", ()) if isinstance(part, name)]
    return given[0] if given else None


def _kind(hint: Any, field: str) -> _Kind:
    # Python joins annotations of annotations into one.
    parts = [part for part in getattr(hint, "__metadata__", ()) if not isinstance(part, (bound, name))]
    limits = [part.length for part in getattr(hint, "__metadata__", ()) if isinstance(part, bound)]
    limit = limits[0] if limits else 0
    if get_origin(hint) is Annotated:
        inner = get_args(hint)[0]
        hint = Annotated[inner, *parts] if parts else inner
    if hint is str:
        return _Text(limit)
    if hint is bool:
        return _Bool()
    if isinstance(known := getattr(hint, "__noctule__", None), _Struct):
        return known
    origin, arguments, length = get_origin(hint), get_args(hint), None
    if origin is Annotated:
        if isinstance(arguments[1], str) and arguments[1] in _CODES:
            return _Number(arguments[1])
        if isinstance(arguments[1], int):
            length, hint = arguments[1], arguments[0]
            origin, arguments = get_origin(hint), get_args(hint)
    if origin is list:
        return _Many(_kind(arguments[0], field), length, is_numpy=False, bound=limit)
    if origin is np.ndarray:
        number = _NUMPY.get(np.dtype(get_args(arguments[1])[0]).name)
        if number:
            return _Many(_Number(number), length, is_numpy=True, bound=limit)
    raise TypeError(f"field {field} is {hint}; say bool, str, noctule.f64 and the like, a message, a list or an NDArray of those")


@dataclass_transform()
def message(type_name: str) -> Callable[[type[T]], type[T]]:
    """Make a class a dataclass that can be published; ``type_name`` is ``package/Type``, as all sides must agree on."""

    def define(cls: type[T]) -> type[T]:
        cls = dataclasses.dataclass(cls)
        setattr(cls, "__noctule__", _Struct(cls, type_name))
        return cls

    return define


def type_name(cls: type) -> str:
    """Name of a message's type: ``package/Type``."""
    return definition(cls).type_name


def type_hash(cls: type) -> int:
    """Hash of a message's definition, as discovery compares it."""
    return definition(cls).hash


def description(cls: type) -> str:
    """A message's definition as text, for nodes that ask what its samples are made of; see ``Node.describe``."""
    types: dict[str, str] = {}
    definition(cls).describe(types)
    return "".join(types.values())


def dtype(cls: type) -> np.dtype[np.void]:
    """A message of fixed size as NumPy sees it in shared memory, its padding left out.

    ``sample.data.view(noctule.dtype(State))[0]`` is a sample of a plain topic where it lies, while ``sample`` lives.
    Raises ``ValueError`` for a message that holds a text or a sequence.
    """
    kind = definition(cls)
    if not kind.plain:
        raise ValueError(f"{kind.type_name} has no plain layout: it holds a text or a sequence")
    return kind.dtype()


def formats(cls: type) -> tuple[str, ...]:
    """Formats a message can be written in here: ``msgpack`` and ``cbor`` need the packages ``msgpack`` and ``cbor2``."""
    plain = ("plain",) if definition(cls).plain else ()
    return ("cdr", *plain, "json", *(name for name, package in _PACKAGES.items() if _is_there(package)))


def encode(value: object, format: str = "cdr") -> bytes:
    """The bytes of a message. Raises ``ValueError`` for what the format cannot express."""
    kind = definition(type(value))
    try:
        if format == "cdr":
            body = bytearray()
            kind.write(body, value)
            return b"\0\1\0\0" + bytes(body)
        if format == "plain" and kind.plain:
            # Zeros first: NumPy leaves padding as it is.
            record = np.zeros(1, kind.dtype())
            record[0] = kind.to_record(value)
            return record.tobytes()
        if format == "json":
            return json.dumps(kind.tree(value), separators=(",", ":"), allow_nan=False).encode()
        if format in _PACKAGES:
            return bytes(_package(format)[0](kind.tree(value)))
    except (_Wrong, AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"{kind.type_name} cannot be encoded as {format}: {error}") from error
    raise ValueError(f"{kind.type_name} cannot be encoded as {format}; choose one of {', '.join(formats(type(value)))}")


def decode(cls: type[T], buffer: bytes, format: str = "cdr") -> T:
    """The message of these bytes. Raises ``ValueError`` if they are none."""
    kind = definition(cls)
    try:
        if format == "cdr":
            if buffer[:2] not in (b"\0\0", b"\0\1") or len(buffer) < 4:
                raise _Wrong("its representation is not plain CDR")
            value = _whole(kind, _Reader(buffer[4:], "<" if buffer[1] else ">"), 3)
        elif format == "plain" and kind.plain:
            if len(buffer) != kind.plain[0]:
                raise _Wrong(f"{len(buffer)} bytes, but the type has {kind.plain[0]}")
            value = kind.of_record(np.frombuffer(buffer, kind.dtype())[0])
        elif format == "json":
            value = kind.of_tree(json.loads(buffer))
        elif format in _PACKAGES:
            value = kind.of_tree(_package(format)[1](buffer))
        else:
            raise _Wrong(f"choose one of {', '.join(formats(cls))}")
    except Exception as error:  # The packages have errors of their own.
        raise ValueError(f"{kind.type_name} cannot be decoded as {format}: {error}") from error
    result: T = value
    return result


def _whole(kind: _Struct, reader: _Reader, padding: int) -> Any:
    value = kind.read(reader)
    left = len(reader.body) - reader.at
    if left > padding:
        raise _Wrong(f"{left} bytes are left over; the types of the two sides differ")
    return value


# Format to package, and the names of its two functions.
_PACKAGES = {"msgpack": ("msgpack", "packb", "unpackb"), "cbor": ("cbor2", "dumps", "loads")}


def _is_there(package: tuple[str, str, str]) -> bool:
    try:
        import_module(package[0])
    except ImportError:
        return False
    return True


def _package(format: str) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    name, encode_name, decode_name = _PACKAGES[format]
    try:
        package = import_module(name)
    except ImportError as error:
        raise _Wrong(f"it needs the package {name}; pip install {name}") from error
    return getattr(package, encode_name), getattr(package, decode_name)


def definition(cls: type) -> _Struct:
    """Definition of a message class; for the modules of this package."""
    kind = getattr(cls, "__noctule__", None)
    if not isinstance(kind, _Struct):
        raise TypeError(f"{cls.__name__} is no message; put @noctule.message('package/Type') before it")
    return kind
