"""Composite types: every class by its table, defaults, full width, and what is refused."""

from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.protocol.amqp10.errors import DecodeError, LocalError
from ambermq.protocol.amqp10.performatives import classes as performatives
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Attach,
    Begin,
    Close,
    Coordinator,
    Declare,
    Detach,
    Discharge,
    Disposition,
    Error,
    Flow,
    Modified,
    Open,
    Properties,
    Rejected,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    Source,
    Target,
    TransactionalState,
    Transfer,
)
from ambermq.protocol.amqp10.performatives.fields import field_kinds
from ambermq.protocol.amqp10.performatives.read import decode_composite
from ambermq.protocol.amqp10.types.decode import decode
from ambermq.protocol.amqp10.types.encode import encode
from ambermq.protocol.amqp10.types.values import Array, Described, Symbol, UByte, UInt, ULong
from tests.protocol.amqp_values import COMPOSITES, composites, typed


def _decode(data: bytes) -> Composite:
    value, position = decode_composite(data, 0, len(data))
    assert len(data) == position
    return value


def _list_of(composite: Composite) -> list[Any]:
    described, _ = decode(composite.encode())
    return described.value


def _read(described: Described) -> Composite:
    """The composite of a described list that was read as a plain value."""
    return _decode(encode(described))


@settings(max_examples=300, deadline=None)
@given(composites, st.booleans())
def test_round_trip(composite: Composite, full_width: bool) -> None:
    """decode(encode(x)) == x for every composite type, written in full or trimmed."""
    assert composite == _decode(composite.encode(full_width))


@settings(max_examples=100, deadline=None)
@given(composites)
def test_decoded_fields_have_plain_types(composite: Composite) -> None:
    """A field whose type the table names is read as plain Python, so that state machines need no wrappers."""
    plain = {"boolean": bool, "binary": bytes, "string": str, "map": dict, "symbol": Symbol}
    decoded = _decode(composite.encode())
    for name, field in zip(composite.FIELDS, composite.TYPES, strict=True):
        value = getattr(decoded, name)
        kinds = field_kinds(field)
        if field.multiple:
            assert all(type(item) is Symbol for item in value)
        elif value is not None and field.type != "*" and kinds[0] not in COMPOSITES:
            assert type(value) is plain.get(kinds[0], int)


@settings(max_examples=100, deadline=None)
@given(composites)
def test_full_width_writes_every_field(composite: Composite) -> None:
    """Each list has as many values as its type has fields, nested ones as well."""
    described, _ = decode(composite.encode())
    assert len(type(composite).FIELDS) == len(described.value)
    for item in described.value:
        # A field of any type may hold a described value whose descriptor cannot be hashed.
        named = isinstance(item, Described) and isinstance(item.descriptor, ULong | Symbol)
        if named and item.descriptor in performatives.COMPOSITES:
            assert len(performatives.COMPOSITES[item.descriptor].FIELDS) == len(item.value)


@settings(max_examples=100, deadline=None)
@given(composites)
def test_general_and_composite_decoder_agree(composite: Composite) -> None:
    """What the general decoder reads as a described list is the same composite."""
    described, _ = decode(composite.encode())
    assert ULong(composite.CODE) == described.descriptor
    assert composite == _read(described)
    assert composite == _read(Described(Symbol(composite.NAME), described.value))


@settings(max_examples=100, deadline=None)
@given(composites)
def test_truncation_at_any_byte(composite: Composite) -> None:
    """A composite cut anywhere is a DecodeError, even where more bytes follow."""
    data = composite.encode()
    for end in range(len(data)):
        with pytest.raises(DecodeError):
            decode_composite(data, 0, end)


@settings(max_examples=300, deadline=None)
@given(composites, st.data())
def test_mutated_bytes(composite: Composite, data: st.DataObject) -> None:
    """A composite with a byte changed is a composite or a DecodeError."""
    mutated = bytearray(composite.encode())
    mutated[data.draw(st.integers(0, len(mutated) - 1))] = data.draw(st.integers(0, 255))
    with suppress(DecodeError):
        assert decode_composite(mutated, 0, len(mutated))[1] <= len(mutated)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(performatives.COMPOSITES)), st.binary(max_size=30))
def test_random_bytes(code: int, tail: bytes) -> None:
    """A descriptor with any bytes behind it is a composite or a DecodeError."""
    for head in (b"", bytes((0, 0x53, code)), bytes((0, 0x53, code, 0xC0, len(tail) & 0xFF))):
        with suppress(DecodeError):
            decode_composite(head + tail, 0, len(head + tail))


@pytest.mark.parametrize("name", sorted(COMPOSITES))
def test_a_class_says_all_of_its_type(name: str) -> None:
    """A class has its type's descriptor and fields, is slotted, and is found by its code."""
    cls = COMPOSITES[name]
    assert performatives.COMPOSITES[cls.CODE] is cls
    assert f"amqp:{name}:list" == cls.NAME
    assert tuple(field.name.replace("-", "_") for field in cls.TYPES) == cls.FIELDS
    assert all(field.mandatory == (field.default is ...) for field in cls.TYPES)
    assert not hasattr(object.__new__(cls), "__dict__")


def test_missing_trailing_fields_are_defaults() -> None:
    """An open of container-id alone has the defaults of the specification."""
    opened = _decode(bytes.fromhex("00 53 10 c0 04 01 a1 01 63"))
    assert Open(container_id="c") == opened
    assert isinstance(opened, Open)
    assert (opened.max_frame_size, opened.channel_max) == (4_294_967_295, 65_535)
    assert (opened.idle_time_out, opened.desired_capabilities) == (None, ())


def test_null_is_the_default() -> None:
    """A null between other fields means the same as a missing one."""
    attach = _decode(bytes.fromhex("00 53 12 c0 09 05 a1016c 43 41 40 5001"))
    assert isinstance(attach, Attach)
    assert (attach.snd_settle_mode, attach.rcv_settle_mode) == (2, 1)


def test_trimmed_encoding_leaves_out_trailing_defaults() -> None:
    """Without full width a flow ends with its last telling field."""
    flow = Flow(incoming_window=1, next_outgoing_id=0, outgoing_window=2)
    assert bytes.fromhex("00 53 13 c0 07 04 40 5201 43 5202") == flow.encode(full_width=False)
    assert bytes.fromhex("00 53 24 45") == Accepted().encode(full_width=False) == Accepted().encode()


def test_full_width_golden_bytes() -> None:
    """A disposition as it leaves: six fields, the outcome in list0."""
    disposition = Disposition(role=True, first=1, last=300, settled=True, state=Accepted())
    assert bytes.fromhex("00 53 15 c0 0f 06 41 5201 70 0000012c 41 00 53 24 45 42") == disposition.encode()


def test_all_encodings_of_a_list_and_a_descriptor() -> None:
    """list0, list8 and list32, and a descriptor as ulong, smallulong or symbol, are one composite."""
    for descriptor in ("00 53 17", "00 80 0000000000000017", "00 a3 0d 616d71703a656e643a6c697374"):
        for written in ("45", "c0 01 00", "c0 02 01 40", "d0 00000004 00000000", "d0 00000005 00000001 40"):
            assert performatives.End() == _decode(bytes.fromhex(descriptor + written))


@pytest.mark.parametrize(
    "written", ["a3 01 61", "b3 00000001 61", "e0 04 01 a3 01 61", "f0 0000000a 00000001 b3 00000001 61"]
)
def test_multiple_takes_a_single_value_or_an_array(written: str) -> None:
    """A multiple field is a tuple, however it was written."""
    data = bytes.fromhex(written)
    mechanisms = _decode(b"\x00\x53\x40\xc0" + bytes((len(data) + 1, 1)) + data)
    assert SaslMechanisms(sasl_server_mechanisms=(Symbol("a"),)) == mechanisms


def test_multiple_is_written_as_an_array() -> None:
    """Some clients read sasl-server-mechanisms only from an array, so a single value is in one too."""
    assert [Array("symbol", (Symbol("PLAIN"),))] == _list_of(SaslMechanisms(sasl_server_mechanisms=("PLAIN",)))
    assert [Array("symbol", ())] == _list_of(SaslMechanisms(sasl_server_mechanisms=()))
    assert _list_of(Coordinator()) == [None]


def test_plain_str_becomes_a_symbol_where_one_belongs() -> None:
    """Symbols, and the keys of fields and filter sets, may be given as str."""
    error = _list_of(Error(condition="amqp:not-found", info={"a": "b"}))
    assert typed([Symbol("amqp:not-found"), None, {Symbol("a"): "b"}]) == typed(error)
    assert typed({Symbol("f"): 1}) == typed(_list_of(Source(filter={"f": 1}))[7])


@pytest.mark.parametrize("message_id", ["a", b"a", UUID(int=7), ULong(0), ULong(2**64 - 1)])
def test_message_ids_keep_their_type(message_id: Any) -> None:
    """A message-id is a string, binary, uuid or ulong; a plain int is an ulong."""
    assert typed(message_id) == typed(_list_of(Properties(message_id=message_id))[0])
    assert ULong(5) == _list_of(Properties(message_id=5))[0]


@pytest.mark.parametrize(
    ("field", "described"),
    [
        ("not that of a composite type", Described(ULong(0x99), [])),
        ("not that of a composite type", Described(UInt(0x24), [])),
        ("not that of a composite type", Described([], [])),
        ("flow: mandatory", Described(ULong(0x13), [])),
        ("missing: incoming-window$", Described(ULong(0x13), [None, None, UInt(0), UInt(0)])),
        ("begin: next-outgoing-id", Described(ULong(0x11), [None, "a", UInt(0), UInt(0)])),
        ("begin: next-outgoing-id", Described(ULong(0x11), [None, ULong(1), UInt(0), UInt(0)])),
        ("open: container-id", Described(ULong(0x10), [Symbol("a")])),
        ("end: expected at most 1 fields, found 2", Described(ULong(0x17), [None, None])),
        ("end: expected a list", Described(ULong(0x17), {})),
        ("attach: snd-settle-mode", Described(ULong(0x12), ["l", UInt(0), False, UByte(3)])),
        (
            "attach: source: the field cannot be of type accepted",
            Described(ULong(0x12), ["l", UInt(0), False, None, None, Described(ULong(0x24), [])]),
        ),
        (
            "attach: source: source: durable",
            Described(ULong(0x12), ["l", UInt(0), False, None, None, Described(ULong(0x28), [None, UInt(3)])]),
        ),
        ("attach: unsettled", Described(ULong(0x12), ["l", UInt(0), False, None, None, None, None, []])),
        ("sasl-outcome: code", Described(ULong(0x44), [UByte(5)])),
        ("coordinator: capabilities", Described(ULong(0x30), [Array("string", ("a",))])),
        ("source: expiry-policy", Described(ULong(0x28), [None, None, Symbol("sometime")])),
    ],
)
def test_what_does_not_belong_is_named(field: str, described: Described) -> None:
    """A value of another type, out of range, unknown, missing or too many: a DecodeError that says where."""
    with pytest.raises(DecodeError, match=field) as caught:
        _read(described)
    assert caught.value.condition == "amqp:decode-error"


@pytest.mark.parametrize(
    ("name", "composite"),
    [
        ("handle", Detach(handle=-1)),
        ("handle", Detach(handle=2**32)),
        ("remote_channel", Begin(remote_channel=2**16, next_outgoing_id=0, incoming_window=0, outgoing_window=0)),
        ("closed", Detach(handle=0, closed="yes")),
        ("error", Close(error=Accepted())),
        ("error", Close(error="no")),
        ("container_id", Open(container_id=b"c")),
        ("mechanism", SaslInit(mechanism="\u00e9")),
        ("code", SaslOutcome(code=256)),
        ("sasl_server_mechanisms", SaslMechanisms(sasl_server_mechanisms="PLAIN")),
        ("delivery_tag", Transfer(handle=0, delivery_tag="a")),
        ("state", Transfer(handle=0, state=Target())),
        ("message_id", Properties(message_id=1.5)),
        ("properties", Open(container_id="", properties=[1])),
    ],
)
def test_our_own_mistakes_are_local_errors(name: str, composite: Composite) -> None:
    """A field that cannot be written is a LocalError that names it."""
    with pytest.raises(LocalError, match=name):
        composite.encode()


def test_nested_composites_are_bounded_by_their_parents() -> None:
    """A composite inside another cannot reach behind it."""
    inner = Described(ULong(0x1D), [Symbol("c"), "d"])
    data = bytearray(encode(Described(ULong(0x18), [inner])))
    assert isinstance(_decode(bytes(data)), Close)
    data[4] -= 1
    with pytest.raises(DecodeError):
        decode_composite(data, 0, len(data))


def test_any_value_is_kept_where_any_will_do() -> None:
    """declare's global-id has no type that provides it: any value is read as it is."""
    declare = Declare(global_id=[UInt(1), "a"])
    decoded = _decode(declare.encode())
    assert isinstance(decoded, Declare)
    assert typed([UInt(1), "a"]) == typed(decoded.global_id)


def test_outcomes_nest() -> None:
    """An outcome in a transactional state in a disposition comes through."""
    state = TransactionalState(txn_id=b"t", outcome=Rejected(error=Error(condition="c")))
    assert Disposition(role=True, first=0, state=state) == _decode(
        Disposition(role=True, first=0, state=state).encode()
    )
    assert Discharge(txn_id=b"t", fail=True) == _decode(Discharge(txn_id=b"t", fail=True).encode())
    assert Source(default_outcome=Modified()) == _decode(Source(default_outcome=Modified()).encode())
