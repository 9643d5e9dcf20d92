"""Types by the text of docs/spec/type-description.md: their hash and their CDR, as docs/spec/formats.md has them. Written from those pages alone."""

import struct

INTEGERS = {f"{sign}int{bits}": f"{sign[:1] or 'i'}{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
PRIMITIVES = INTEGERS | {"bool": "bool", "byte": "u8", "char": "u8", "float32": "f32", "float64": "f64"}
LAYOUTS = {"bool": "?", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q", "u64": "Q", "f32": "f", "f64": "d"}


def definitions(text):
    """Name → kind and members; the first is the type itself."""
    found = {}
    for line in text.splitlines():
        if line.startswith(" "):
            found[name][1].append(line[1:].rsplit(" ", 1))
        else:
            kind, name = line.split(" ", 1)
            found[name] = (kind, [])
    return found


def shape(text):
    """What is outermost around an element, its number, and what it is around."""
    if text.endswith("?"):
        return "optional", 0, text[:-1]
    if text.endswith("]"):
        inner, size = text[:-1].rsplit("[", 1)
        return ("array" if size.isdecimal() else "sequence"), int(size.lstrip("<=") or 0), inner
    return "", 0, text


# ----------------------------------------------------------------------------------------------------- hash


def fnv(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value or 1


def name_bytes(text):
    return text.encode() + b"\0"


def number_bytes(value):
    return struct.pack("<Q", value)


def type_hash(text):
    known = definitions(text)

    def hash_of(type_text):
        kind, size, inner = shape(type_text)
        if kind:
            return fnv(name_bytes(kind) + number_bytes(hash_of(inner)) + number_bytes(size))
        if inner in PRIMITIVES:
            return fnv(name_bytes(PRIMITIVES[inner]))
        if inner.startswith(("string", "wstring")):
            word, _, bound = inner.partition("<=")
            return fnv(name_bytes(word) + (number_bytes(int(bound)) if bound else b""))
        kind, members = known[inner]
        if kind == "enum":
            return fnv(name_bytes("enum") + name_bytes(inner) + b"".join(name_bytes(variant) for (variant,) in members))
        fields = [name_bytes(field) + number_bytes(hash_of(field_type)) for field_type, field in members]
        return fnv(name_bytes(inner) + b"".join(fields))

    return hash_of(next(iter(known)))


# ------------------------------------------------------------------------------------------------------ CDR


def read_cdr(text, data):
    """The value, and how many bytes follow it. Little-endian; without enums and `wstring`."""
    known, at = definitions(text), 4
    assert data[:4] == b"\0\1\0\0"

    def primitive(word):
        nonlocal at
        size = struct.calcsize(LAYOUTS[word])
        at += -(at - 4) % size + size
        return struct.unpack_from("<" + LAYOUTS[word], data, at - size)[0]

    def value(type_text):
        nonlocal at
        kind, size, inner = shape(type_text)
        if kind:
            return [value(inner) for _ in range(size if kind == "array" else primitive("u32"))]
        if inner in PRIMITIVES:
            return primitive(PRIMITIVES[inner])
        if inner.startswith("string"):
            count = primitive("u32")
            at += count
            assert data[at - 1] == 0
            return data[at - count : at - 1].decode()
        return {field: value(field_type) for field_type, field in known[inner][1]}

    return value(next(iter(known))), len(data) - at
