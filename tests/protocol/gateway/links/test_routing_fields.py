"""Fields of encoded messages: what the general decoder says, read as far as asked, whatever the bytes."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.selectors.fields import ABSENT
from ambermq.engine.selectors.selector import parse_selector
from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.message.message import AmqpValue, Data, Message, decode_message
from ambermq.protocol.amqp10.performatives.classes import Header, Properties
from ambermq.protocol.amqp10.performatives.read import decode_composite
from ambermq.protocol.amqp10.types.decode import decode
from ambermq.protocol.amqp10.types.encode import encode
from ambermq.protocol.amqp10.types.values import Map, Symbol, UInt, ULong
from ambermq.protocol.gateway.links.routing_fields import RoutingFields
from tests.protocol.amqp_messages import messages
from tests.protocol.amqp_values import typed

_HEADER_DEFAULTS = {"durable": False, "priority": 4, "first-acquirer": False, "delivery-count": 0}
_PREFIXES = ("header.", "properties.", "annotations.")


def _expected(message: Message) -> dict[str, Any]:
    """Every name that means something, by the sections as the general decoder has them."""
    header, properties = message.header or Header(), message.properties or Properties()
    found: dict[str, Any] = {}
    for name in Header.FIELDS:
        key, value = name.replace("_", "-"), getattr(header, name)
        found[f"header.{key}"] = _HEADER_DEFAULTS.get(key, ABSENT) if value is None else value
    for name in Properties.FIELDS:
        value = getattr(properties, name)
        found[f"properties.{name.replace('_', '-')}"] = ABSENT if value is None else value
    found |= {f"annotations.{key}": value for key, value in _named(message.message_annotations).items()}
    own = _named(message.application_properties)
    return found | {key: value for key, value in own.items() if not key.startswith(_PREFIXES)}


def _named(section: dict[Any, Any] | Map | None) -> dict[str, Any]:
    pairs = section.pairs if isinstance(section, Map) else (section or {}).items()
    return {key: value for key, value in pairs if isinstance(key, str)}


@settings(max_examples=100, deadline=None)
@given(messages, st.booleans(), st.randoms(use_true_random=False))
def test_fields_equal_the_general_decoder(message: Message, as_view: bool, random: Any) -> None:
    """Each name is what the decoded section says, type included, in whatever order they are asked for."""
    data = message.encode()
    fields = RoutingFields(memoryview(data) if as_view else data)
    expected = _expected(decode_message(data))
    names = [*expected, *expected, "no such name", "header.no", "properties.no", "annotations.no such", "properties."]
    random.shuffle(names)
    for name in names:
        assert typed(fields.get(name)) == typed(expected.get(name, ABSENT)), name
    address, subject = expected["properties.to"], expected["properties.subject"]
    assert fields.to == (None if address is ABSENT else address)
    assert fields.subject == (None if subject is ABSENT else subject)


@settings(max_examples=150, deadline=None)
@given(messages, st.data())
def test_broken_bytes(message: Message, data: st.DataObject) -> None:
    """Changed and cut bytes never raise; a message that still decodes has the fields that it decodes to."""
    broken = bytearray(message.encode())
    for _ in range(data.draw(st.integers(1, 3))):
        broken[data.draw(st.integers(0, min(len(broken), 80) - 1))] = data.draw(st.integers(0, 255))
    payload = bytes(broken[: data.draw(st.integers(0, len(broken)))])
    fields = RoutingFields(payload)
    try:
        expected = _expected(decode_message(payload))
    except DecodeError:
        expected = dict.fromkeys(_expected(message), ...)
    for name, value in expected.items():
        found = fields.get(name)
        assert value is ... or typed(found) == typed(value)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60), st.sampled_from(("a", "header.priority", "properties.to", "annotations.a")))
def test_junk(payload: bytes, name: str) -> None:
    """Any bytes at all have fields."""
    RoutingFields(payload).get(name)


def test_a_section_that_cannot_be_read_is_not_there() -> None:
    """Others, before and behind it, are; the defaults of the header hold without it."""
    bad_header = b"\x00\x53\x70\xc0\x03\x01\x50\x07"  # an ubyte where the boolean durable belongs
    bad_properties = b"\x00\x53\x73\xc0\x04\x01\xa1\x01\xff"
    rest = Message(application_properties={"a": 1}, body=(AmqpValue(1),)).encode()
    fields = RoutingFields(bad_header + bad_properties + rest)
    assert fields.get("header.durable") is False
    assert fields.get("header.priority") == 4
    assert fields.get("properties.message-id") is ABSENT
    assert fields.to is None
    assert fields.get("a") == 1


def test_sections_behind_an_unknown_end_are_not_there() -> None:
    """A section that reaches behind the message hides those that follow, not those before."""
    data = Message(header=Header(priority=9), properties=Properties(to="q"), application_properties={"a": 1}).encode()
    for cut in range(len(data)):
        fields = RoutingFields(data[:cut])
        assert fields.get("header.priority") in (4, 9)
        assert fields.to in (None, "q")
        assert fields.get("a") in (ABSENT, 1)
    out_of_order = Properties(to="q").encode() + Header(priority=9).encode()
    assert RoutingFields(out_of_order).get("header.priority") == 4


def test_null_and_absent() -> None:
    """A null application property is a value; a null field of the properties is not there."""
    data = Message(properties=Properties(to="q"), application_properties={"a": None}).encode()
    fields = RoutingFields(data)
    assert fields.get("a") is None
    assert fields.get("b") is ABSENT
    assert fields.get("properties.subject") is ABSENT


def test_a_prefix_names_a_section() -> None:
    """An application property whose name begins like a section's cannot be asked for: the section answers."""
    data = Message(application_properties={"properties.to": "no", "other.to": "yes"}).encode()
    fields = RoutingFields(data)
    assert fields.get("properties.to") is ABSENT
    assert fields.get("other.to") == "yes"


def test_symbols_and_numbers_compare_by_value() -> None:
    """A symbol equals its string, numbers of all widths their value."""
    data = Message(
        message_annotations={"x-key": Symbol("v")},
        application_properties={"n": UInt(5), "m": ULong(5), "s": Symbol("v")},
    ).encode()
    assert parse_selector("n = 5 AND m = n AND s = 'v' AND \"annotations.x-key\" = s").matches(RoutingFields(data))


def test_each_section_is_decoded_once_and_only_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is decoded before a name of the section is asked for, and nothing twice, missing names neither."""
    decoded: list[int] = []

    def counting(function: Any) -> Any:
        def count(body: Any, start: int, stop: int) -> Any:
            decoded.append(body[start + 2])
            return function(body, start, stop)

        return count

    monkeypatch.setattr("ambermq.protocol.amqp10.message.sections.decode", counting(decode))
    monkeypatch.setattr("ambermq.protocol.amqp10.message.sections.decode_composite", counting(decode_composite))
    message = Message(
        header=Header(priority=9),
        message_annotations={"x": 1},
        properties=Properties(to="q"),
        application_properties={"a": 1},
        body=(Data(b""),),
    )
    fields = RoutingFields(message.encode())
    assert decoded == []
    asked = [
        ("a", "b", "c.d"),
        ("properties.to", "properties.no", "properties.subject"),
        ("header.ttl", "header.priority"),
    ]
    for names, codes in zip(asked, ([0x74], [0x74, 0x73], [0x74, 0x73, 0x70]), strict=True):
        for name in (*names, *names):
            fields.get(name)
        assert codes == decoded


def test_annotations_that_were_added_are_seen() -> None:
    """As the message goes out: beside its own, and in their place; what cannot be read changes nothing."""
    body = Message(message_annotations={Symbol("a"): 1, Symbol("b"): 2}, body=(AmqpValue("x"),)).encode()
    added = ((encode(Symbol("b")), encode("new")), (encode(Symbol("c")), encode(None)))
    fields = RoutingFields(body, added)
    assert [fields.get(f"annotations.{name}") for name in "abcd"] == [1, "new", None, ABSENT]
    assert RoutingFields(body, ((b"\xff", b""),)).get("annotations.b") == 2
    assert RoutingFields(Message(body=(AmqpValue("x"),)).encode(), added).get("annotations.b") == "new"
