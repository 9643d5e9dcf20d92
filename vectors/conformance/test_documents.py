"""The worked examples of docs/spec, read and written by an implementation that knows nothing but those pages."""

import json
import re
import struct
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

import datagrams
import described
import envelope

SPECIFICATION = Path(__file__).parents[2] / "docs" / "spec"
NODE = bytes(range(16))


def blocks(page, language, after=""):
    text = (SPECIFICATION / page).read_text()
    return re.findall(rf"```{language}\n(.*?)```", text[text.index(after) :], re.DOTALL)


def example(title):
    """The bytes of an example of PRRT: in each line they end at two spaces."""
    lines = blocks("prrt.md", "text", f"### {title}\n")[0].splitlines()
    return b"".join(bytes.fromhex(line.split("  ")[0]) for line in lines)


def parsed(data):
    near = datagrams.Near(10**9, 655_360, 720_896)
    header, body = datagrams.parse_header(data)
    return header | datagrams.parse_body(header["content"], body, near)


def expect(found, **values):
    assert {name: found[name] for name in values} == values


def test_discovery():
    hello, page, query, challenge, response = (bytes.fromhex(text) for text in blocks("discovery.md", "hex"))
    digest = datagrams.digest([1])
    body = datagrams.hello_body(1, 1, 50, 40001, 1, 0x0123456789ABCDEF, digest, "far")
    assert hello == datagrams.discovery(datagrams.HELLO, NODE, 7, body)
    expect(datagrams.parse_discovery(hello), revision=1, pages=1, port=40001, digest=digest, name="far")
    found = datagrams.parse_discovery(page)
    expect(found["endpoints"][0], number=1, is_reader=0, reliability=1, formats=2, deadline=10_000_000, loss=1000, topic="imu")
    assert page == datagrams.discovery(datagrams.PAGE, NODE, 7, datagrams.page_body(0, 1, found["endpoints"]))
    other = bytes(range(16, 32))
    assert query == datagrams.discovery(datagrams.QUERY, NODE, 7, datagrams.query_body(other, 0, [1]))
    expect(datagrams.parse_discovery(query), asked=other, without=[1])
    expect(datagrams.parse_discovery(challenge), asked=other, challenge=0xFEDCBA9876543210)
    number = struct.pack("<Q", 0xFEDCBA9876543210)
    assert response == datagrams.discovery(datagrams.RESPONSE, NODE, 7, number + body)


def test_clock_exchange():
    request, reply = (bytes.fromhex(text) for text in blocks("sync.md", "hex"))
    assert request == datagrams.sync_request(0x0102030405060708)
    assert reply == datagrams.sync_reply(request, -1, 256)


def test_samples():
    content, body = datagrams.sample(3, 300, 999_999_000, b"\7" * 10, numbers=(658_188, 4, 1))
    assert example("Reliable sample") == datagrams.short_header(content, 1541) + body
    expect(parsed(example("Reliable sample")), packet=658_188, position=299, lowest=295, sequence=300, source=999_999_000)
    first, second, third = parsed(example("Several samples"))["samples"]
    expect(first, packet=658_188, position=299, lowest=295, sequence=300, source=999_999_000, fragment=b"\7" * 10)
    expect(second, packet=658_188, position=300, lowest=295, sequence=301, source=10**9 + 1_000, fragment=b"\7\7")
    expect(third, packet=658_188, position=301, lowest=295, sequence=302, source=10**9 + 999, fragment=b"")
    content, body = datagrams.sample(3, 300, 999_999_000, b"\7" * 8, numbers=(658_188, 4, 1), part=(28, 2, 3))
    assert example("Last fragment of a reliable sample") == datagrams.short_header(content, 1541) + body
    expect(parsed(example("Last fragment of a reliable sample")), total=28, index=2, count=3, fragment=b"\7" * 8)
    content, body = datagrams.sample(3, 300, 999_999_000, b"\7" * 10)
    assert example("Long header") == datagrams.long_header(content, 1541, 2055, 0x04030201, 10**9, 6) + body
    found = parsed(example("Fragment with a deadline"))
    expect(found, packet=655_366, block=9, is_urgent=1, symbol=2, symbols=5, repairs=1, total=28, index=1, count=3)
    expect(parsed(example("Sample alone in its block")), packet=655_366, repairs=2, is_urgent=1)
    expect(parsed(example("Parity")), packet=655_366, block=9, symbol=129, symbols=5, symbol_bytes=b"\x08\x09")


def test_feedback():
    found = parsed(example("Feedback"))["feedback"]
    missing = [720_893, 720_891, 720_832]
    expect(found, newest=720_895, arrived=0, delay=1000, missing=missing, refused=[])
    head = datagrams.short_header(datagrams.FEEDBACK, 1541)
    assert example("Feedback") == head + datagrams.feedback(720_895, 0, 1000, missing)
    found = parsed(example("Feedback with bits"))["feedback"]
    expect(found, newest=720_896, arrived=-(2**63), missing=list(range(720_893, 720_832, -1)), refused=[720_896, 720_894])


def test_flow_control():
    both = example("Flow control")
    expect(parsed(both[:6]), is_question=0, writer=3, position=300)
    expect(parsed(both[6:]), is_question=1, writer=3, position=284)


def test_parity():
    symbols = [b"\1\2\3", b"\4\5"]
    assert example("Parity symbols") == b"".join(datagrams.parity_symbol(i, symbols) for i in range(3))


def test_envelope():
    lines = blocks("envelope.md", "text", "## Worked example")[0].splitlines()
    given, title = {}, ""
    for line in lines:
        title, data = (title, bytes.fromhex(line)) if re.fullmatch("[0-9a-f]+", line) else (line, b"")
        given[title] = given.get(title, b"") + data
    challenge, answer, pair, number, secret, sample, hello, short = given.values()
    static = [X25519PrivateKey.from_private_bytes(bytes([byte]) * 32) for byte in (1, 2)]
    ephemeral = [X25519PrivateKey.from_private_bytes(bytes([byte]) * 32) for byte in (4, 5)]
    nodes = [envelope.node_number(key.public_key().public_bytes_raw()) for key in static]
    challenger, responder = (envelope.Handshake(*nodes, bytes([3]) * 32, *keys) for keys in zip(static, ephemeral))
    payload = struct.pack("<QQ", 1, 2) + bytes(64)
    assert challenger.write_challenge(payload) == challenge
    assert responder.read_challenge(challenge) == payload
    payload = struct.pack("<BBHHHQ", 1, 1, 9, 10, 0, 7) + bytes([6]) * 32 + bytes([8]) * 32
    assert responder.write_answer(payload) == answer
    assert challenger.read_answer(answer) == payload
    assert challenger.pair() == responder.pair() == pair
    assert struct.pack("<Q", envelope.number_of_pair(pair)) == number
    assert envelope.after_generations(bytes([6]) * 32, 1) == secret
    key = envelope.derived(secret, b"node", pair)
    assert envelope.seal(envelope.ONE, 9, nodes[0], 8 << 16, key, b"sample") == sample
    plain = example("Reliable sample")
    assert envelope.seal_short(plain[:3], 8 << 16, key, *nodes, plain[3:]) == short
    assert envelope.open_short(short, 8 << 16, key, *nodes) == plain[3:]
    key = envelope.derived(envelope.swarm_secret(bytes([7]) * 32), b"sender", nodes[0])
    assert envelope.seal(envelope.ALL, 9, nodes[0], 1, key, b"hello") == hello


def test_hash_of_a_type():
    lines = blocks("formats.md", "text", "## 5. Hash of a type")[0].splitlines()
    steps = [(bytes.fromhex(line.split("  ")[0]), line.split("  ")[1]) for line in lines]
    data = b""
    for step, meaning in steps:
        if meaning.startswith("→"):
            assert struct.pack("<Q", described.fnv(data)) == step, meaning
            data = b""
        else:
            data += step
    assert described.type_hash("struct demo/Point\n float64 x\n float32[2] y\n") == struct.unpack("<Q", steps[-1][0])[0]


def single(value):
    """With single precision everywhere, of which JSON has the shortest digits."""
    if isinstance(value, dict):
        return {name: single(field) for name, field in value.items()}
    if isinstance(value, list):
        return [single(element) for element in value]
    return struct.pack("f", value) if isinstance(value, float) else value


def test_formats_of_the_vectors():
    folder = Path(__file__).parents[1] / "formats"
    definition = re.findall(r"```text\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)[0]
    value, left = described.read_cdr(definition, (folder / "uav_state.cdr").read_bytes())
    assert not left and single(value) == single(json.loads((folder / "uav_state.json").read_text()))
