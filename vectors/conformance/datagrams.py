"""The datagrams of nodes as docs/spec describes them: discovery, clock exchange, PRRT. Written from those pages alone."""

import struct
from dataclasses import dataclass


class Malformed(Exception):
    """A datagram that violates its page."""


def require(holds, what="form"):
    if not holds:
        raise Malformed(what)


# ------------------------------------------------------------------------------------------------ discovery

HELLO, PAGE, QUERY, BYE, CHALLENGE, RESPONSE = range(1, 7)
FOREVER = 2**63 - 1
ENDPOINT = struct.Struct("<IBBBBIIQqqIHBB")
ENDPOINT_FIELDS = "number is_reader reliability durability flags formats bytes_max type_hash deadline lifespan loss depth".split()
HELLO_BODY = struct.Struct("<IHHHBBQQ")


def mix(z):
    """The finaliser of SplitMix64."""
    z ^= z >> 30
    z = z * 0xBF58476D1CE4E5B9 % 2**64
    z ^= z >> 27
    z = z * 0x94D049BB133111EB % 2**64
    return z ^ z >> 31


def digest(revisions):
    """Of pages 0, 1, … by their revisions; 0 for a page that is missing."""
    total = 0
    for number, revision in enumerate(revisions):
        total ^= mix(mix((number << 32) + revision))
    return total


def discovery(kind, node, domain, body=b""):
    return b"NCTD" + struct.pack("<BBH16sI", 1, kind, 0, node, domain) + body


def hello_body(revision, pages, lifetime, port, wants_answers, host, pages_digest, name):
    name = name.encode()
    return HELLO_BODY.pack(revision, pages, lifetime, port, wants_answers, len(name), host, pages_digest) + name


def page_body(number, revision, endpoints):
    body = struct.pack("<HHI", number, len(endpoints), revision)
    for endpoint in endpoints:
        topic, type_name = endpoint["topic"].encode(), endpoint["type"].encode()
        values = [endpoint[name] for name in ENDPOINT_FIELDS]
        body += ENDPOINT.pack(*values, len(topic), len(type_name)) + topic + type_name
    return body


def query_body(node, revision, pages):
    bits = sum(1 << page for page in pages)
    return struct.pack("<16sI", node, revision) + bits.to_bytes(32, "little")


def parse_discovery(data):
    require(data[:4] == b"NCTD" and len(data) >= 28)
    version, kind, zero, node, domain = struct.unpack_from("<BBH16sI", data, 4)
    require(version == 1 and HELLO <= kind <= RESPONSE and zero == 0)
    found = {"kind": kind, "node": node, "domain": domain}
    body = data[28:]
    if kind == RESPONSE:
        found["challenge"] = struct.unpack_from("<Q", body)[0]
        body = body[8:]
    if kind in (HELLO, RESPONSE):
        values = HELLO_BODY.unpack_from(body)
        found |= dict(zip("revision pages lifetime port wants_answers name_bytes host digest".split(), values))
        require(values[5] <= 64 and len(body) == HELLO_BODY.size + values[5])
        found["name"] = body[HELLO_BODY.size :].decode()
    elif kind == PAGE:
        found["page"], count, found["revision"] = struct.unpack_from("<HHI", body)
        found["endpoints"], at = [], 8
        for _ in range(count):
            *values, topic, type_name = ENDPOINT.unpack_from(body, at)
            at += ENDPOINT.size
            endpoint = dict(zip(ENDPOINT_FIELDS, values))
            endpoint["topic"] = body[at : at + topic].decode()
            endpoint["type"] = body[at + topic : at + topic + type_name].decode()
            at += topic + type_name
            found["endpoints"].append(endpoint)
        require(at == len(body))
    elif kind == QUERY:
        require(len(body) == 52)
        found["asked"], found["revision"] = struct.unpack_from("<16sI", body)
        bits = int.from_bytes(body[20:], "little")
        found["without"] = [page for page in range(256) if bits >> page & 1]
    elif kind == CHALLENGE:
        require(len(body) == 24)
        found["asked"], found["challenge"] = struct.unpack("<16sQ", body)
    else:
        require(not body)
    return found


# ------------------------------------------------------------------------------------------- clock exchange


def sync_request(nonce):
    return b"NCTS" + struct.pack("<BBHQqq", 1, 1, 0, nonce, 0, 0)


def sync_reply(request, t2, t3):
    return b"NCTS" + struct.pack("<BBH8sqq", 1, 2, 0, request[8:16], t2, t3)


# ----------------------------------------------------------------------------------------------------- PRRT

NOTHING, BEST_EFFORT, RELIABLE, DEADLINE, DEADLINE_ALONE, PARITY, PROBE, FLOW = range(8)
FEEDBACK = 64


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def signed(value):
    return value - 2**64 if value >= 2**63 else value


def nearest(cut, bits, expected):
    """The integer with these low bits that is nearest to the expected one."""
    size = 1 << bits
    middle = expected // size * size + cut
    return min((middle - size, middle, middle + size), key=lambda value: abs(value - expected))


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def integer(self, size):
        return int.from_bytes(self.bytes(size), "little")

    def varint(self):
        value, shift = 0, 0
        while True:
            byte = self.integer(1)
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                require(byte or shift == 7, "longer than needed")
                return value

    def bytes(self, size):
        require(self.at + size <= len(self.data), "ends early")
        self.at += size
        return self.data[self.at - size : self.at]

    def rest(self):
        start, self.at = self.at, len(self.data)
        return self.data[start:]


@dataclass
class Near:
    """What cut integers are nearest to: the sender's clock, its next packet, and our own next packet."""

    clock: int = 0
    packet: int = 0
    own_packet: int = 0


def long_header(content, mine, yours, session, clock, next_packet):
    return b"NCTM" + struct.pack("<BBHHIqQ", 4, content, mine, yours, session, clock, next_packet)


def short_header(content, yours):
    return struct.pack("<BH", 128 | content, yours)


def parse_header(data):
    if data[0] >= 128:
        require(data[0] > 128)
        return {"content": data[0] & 127, "link": struct.unpack_from("<H", data, 1)[0]}, data[3:]
    require(data[:5] == b"NCTM\4" and len(data) >= 30)
    values = struct.unpack_from("<BHHIqQ", data, 5)
    require(values[0] < 128 and values[1] != 0)
    return dict(zip("content mine yours session clock next".split(), values)), data[30:]


def parse_body(content, data, near):
    """What follows the header; the load's number is in `load`."""
    reader = Reader(data)
    found = {"load": content >> 3 & 7}
    if content & FEEDBACK:
        found["feedback"] = parse_feedback(reader, near)
    load, low = found["load"], content & 7
    if load in (BEST_EFFORT, RELIABLE, DEADLINE, DEADLINE_ALONE):
        parse_sample(reader, found, low, near)
        if load == RELIABLE:
            parse_numbers(reader, found, near)
        elif load != BEST_EFFORT:
            parse_place(reader, found, near)
        found["fragment"] = reader.rest() if load != RELIABLE else parse_padded(reader, found)
    elif load == PARITY:
        found["writer"] = reader.varint()
        parse_place(reader, found, near)
        found["symbol_bytes"] = reader.rest()
    elif load == PROBE:
        found["packet"] = nearest(reader.integer(3), 24, near.packet)
        require(not any(reader.rest()))
    elif load == FLOW and low == 2:
        found["samples"] = parse_samples(reader, near)
        found["packet"] = found["samples"][0]["packet"]
    elif load == FLOW:
        found |= {"is_question": low & 1, "writer": reader.varint(), "position": reader.varint()}
    require(reader.at == len(data), "bytes left over")
    return found


def parse_feedback(reader, near):
    head = reader.integer(1)
    require(head < 32)
    newest = nearest(reader.integer(3), 24, near.own_packet)
    arrived = signed(reader.integer(8)) if head & 16 else nearest(reader.integer(5), 40, near.clock)
    delay = reader.varint()
    if head & 7 == 7:
        bits = reader.integer(8)
        missing = [newest - 1 - i for i in range(63) if not bits >> i & 1 and newest - 1 - i >= 0]
    else:
        missing = [newest - 1 - reader.integer(1) for _ in range(head & 7)]
    refused = reader.integer(8) if head & 8 else 0
    require(bool(refused) == bool(head & 8))
    refused = [newest - i for i in range(64) if refused >> i & 1]
    return {"newest": newest, "arrived": arrived, "delay": delay, "missing": missing, "refused": refused}


def feedback(newest, arrived, delay, missing, refused=()):
    indices = sorted(newest - 1 - packet for packet in missing)
    if len(indices) <= 6:
        head, tail = len(indices), bytes(indices)
    else:
        here = sum(1 << i for i in range(min(63, newest)) if i not in indices)
        head, tail = 7, struct.pack("<Q", here)
    if refused:
        head |= 8
        tail += struct.pack("<Q", sum(1 << newest - packet for packet in refused))
    cut = (newest % 2**24).to_bytes(3, "little") + (arrived % 2**40).to_bytes(5, "little")
    return bytes([head]) + cut + varint(min(delay, 2**32 - 1)) + tail


def parse_sample(reader, found, low, near):
    found["writer"], found["sequence"] = reader.varint(), reader.varint()
    found["source"] = signed(reader.integer(8)) if low & 4 else nearest(reader.integer(5), 40, near.clock)
    found |= {"total": None, "index": 0, "count": 1}
    if low & 1:
        found |= {"total": reader.varint(), "index": reader.varint(), "count": reader.varint()}
        require(2 <= found["count"] <= 32767 and found["index"] < found["count"])
    found["error"] = reader.integer(4) if low & 2 else 0


def parse_numbers(reader, found, near):
    found["packet"] = nearest(reader.integer(3), 24, near.packet)
    halves = reader.integer(1)
    behind, ahead = halves & 15, halves >> 4
    behind = reader.varint() if behind == 15 else behind
    ahead = reader.varint() if ahead == 15 else ahead
    found["position"] = (found["sequence"] - ahead) % 2**64
    require(behind <= found["position"] < 2**64 - 1)
    found["lowest"] = found["position"] - behind


def parse_samples(reader, near):
    """Several reliable samples, each as if it had come by itself."""
    first = {"load": RELIABLE}
    parse_sample(reader, first, 0, near)
    parse_numbers(reader, first, near)
    samples, source = [], first["source"]
    while reader.at < len(reader.data):
        if samples:
            step = reader.varint()
            source += -(step + 1 >> 1) if step & 1 else step >> 1
        place, length = len(samples), reader.varint()
        numbers = {"sequence": first["sequence"] + place, "position": first["position"] + place, "source": source}
        samples.append(first | numbers | {"fragment": reader.bytes(length)})
    require(2 <= len(samples) <= 64)
    return samples


def parse_place(reader, found, near):
    found["packet"] = nearest(reader.integer(3), 24, near.packet)
    if found["load"] == DEADLINE_ALONE:
        repairs = reader.integer(1)
        found |= {"repairs": repairs & 127, "is_urgent": repairs >> 7}
        return
    block = reader.integer(3)
    found |= {"block": block % 2**23, "is_urgent": block >> 23}
    found |= {"symbol": reader.integer(1), "symbols": reader.integer(1), "repairs": reader.integer(1)}


def parse_padded(reader, found):
    """A reliable fragment: the last of several is as long as the others, zeros behind it."""
    rest = reader.rest()
    if found["count"] == 1:
        return rest
    size = -(-found["total"] // found["count"])
    left = min(size, found["total"] - found["index"] * size)
    require(len(rest) == size and not any(rest[left:]))
    return rest[:left]


def sample(writer, sequence, source, fragment, numbers=None, part=None):
    """Content and bytes of a sample; `numbers` (packet, behind, ahead) if it is reliable, `part` (total, index, count) if a fragment."""
    content = (RELIABLE if numbers else BEST_EFFORT) << 3 | (1 if part else 0)
    out = varint(writer) + varint(sequence) + (source % 2**40).to_bytes(5, "little")
    out += b"".join(varint(value) for value in part or ())
    if numbers:
        packet, behind, ahead = numbers
        out += (packet % 2**24).to_bytes(3, "little") + bytes([min(behind, 15) | min(ahead, 15) << 4])
        out += b"".join(varint(value) for value in (behind, ahead) if value >= 15)
        if part:
            fragment = fragment.ljust(-(-part[0] // part[2]), b"\0")
    return content, out + fragment


# --------------------------------------------------------------------------------------------------- parity

EXPONENTIALS, LOGARITHMS = [0] * 510, [0] * 256
_value = 1
for _i in range(255):
    EXPONENTIALS[_i] = EXPONENTIALS[_i + 255] = _value
    LOGARITHMS[_value] = _i
    _value = _value << 1 ^ (0x11D if _value & 128 else 0)


def times(a, b):
    return EXPONENTIALS[LOGARITHMS[a] + LOGARITHMS[b]] if a and b else 0


def coefficient(parity, symbol):
    dividend, divisor = 128 ^ symbol, (128 + parity) ^ symbol
    return times(dividend, EXPONENTIALS[255 - LOGARITHMS[divisor]])


def parity_symbol(number, symbols):
    coded = [struct.pack("<H", len(symbol)) + symbol for symbol in symbols]
    longest = max(map(len, coded))
    out = bytearray(longest)
    for j, symbol in enumerate(coded):
        for at, byte in enumerate(symbol):
            out[at] ^= times(coefficient(number, j), byte)
    return bytes(out)


# ----------------------------------------------------------------------------------------------- SipHash-2-4


def siphash(data, key=bytes(16)):
    k0, k1 = struct.unpack("<QQ", key)
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def rotate(value, bits):
        return (value << bits | value >> 64 - bits) % 2**64

    def rounds(count):
        for _ in range(count):
            for a, b, left, right in ((0, 1, 13, 32), (2, 3, 16, 0), (0, 3, 21, 0), (2, 1, 17, 32)):
                v[a] = (v[a] + v[b]) % 2**64
                v[b] = rotate(v[b], left) ^ v[a]
                v[a] = rotate(v[a], right)

    padded = data + bytes(-(len(data) + 1) % 8) + bytes([len(data) % 256])
    for (word,) in struct.iter_unpack("<Q", padded):
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 255
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]
