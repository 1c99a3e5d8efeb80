"""Strategies for AMQP values, and equality that counts types."""

from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from ambermq.protocol.amqp10.performatives import classes as performatives
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.fields import FieldType, field_kinds
from ambermq.protocol.amqp10.spec import CHOICES
from ambermq.protocol.amqp10.types.encode import encode
from ambermq.protocol.amqp10.types.values import (
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
    Float,
    Int,
    Map,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)


def _unsigned(bits: int) -> st.SearchStrategy[int]:
    return st.integers(0, 255) | st.integers(0, 2**bits - 1)


def _signed(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-128, 127) | st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _bytes(size: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=size, max_size=size)


texts = st.text(max_size=12) | st.integers(80, 300).map("\u00e9".__mul__)
words = st.text(st.characters(max_codepoint=127), max_size=12) | st.integers(200, 300).map("a".__mul__)
binaries = st.binary(max_size=12) | st.integers(200, 300).map(bytes)

OF_KIND: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "ubyte": _unsigned(8).map(UByte),
    "ushort": _unsigned(16).map(UShort),
    "uint": _unsigned(32).map(UInt),
    "ulong": _unsigned(64).map(ULong),
    "byte": _signed(8).map(Byte),
    "short": _signed(16).map(Short),
    "int": _signed(32).map(Int),
    "long": _signed(64),
    "float": st.floats(width=32, allow_nan=False).map(Float),
    "double": st.floats(allow_nan=False),
    "decimal32": _bytes(4).map(Decimal32),
    "decimal64": _bytes(8).map(Decimal64),
    "decimal128": _bytes(16).map(Decimal128),
    "char": st.characters(exclude_categories=["Cs"]).map(Char),
    "timestamp": _signed(64).map(Timestamp),
    "uuid": st.uuids(),
    "binary": binaries,
    "string": texts,
    "symbol": words.map(Symbol),
}
"""Name of a primitive type without parts -> its values."""


def _unprinted(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """The same strategy with a short repr, since hypothesis prints strategies now and then, and warns of long ones."""

    @st.composite
    def drawn(draw: st.DrawFn) -> Any:
        return draw(strategy)

    return drawn()


leaves = _unprinted(st.one_of(*OF_KIND.values()))


def arrays(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Array]:
    """Arrays of one kind, with and without descriptors."""
    elements = {
        **OF_KIND,
        "list": st.lists(children, max_size=2),
        "array": st.lists(OF_KIND["uint"], max_size=2).map(lambda items: Array("uint", tuple(items))),
    }
    descriptors = st.lists(OF_KIND["ulong"] | OF_KIND["symbol"], max_size=2).map(tuple)
    return st.sampled_from(sorted(elements)).flatmap(
        lambda kind: st.builds(Array, st.just(kind), st.lists(elements[kind], max_size=4).map(tuple), descriptors)
    )


def maps(children: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[Any, Any] | Map]:
    """Maps as the decoder makes them: a dict, or a Map where a dict would lose a key."""
    pairs = st.lists(st.tuples(leaves | children, children), max_size=4, unique_by=lambda pair: encode(pair[0]))
    return pairs.map(as_decoded)


def as_decoded(pairs: list[tuple[Any, Any]]) -> dict[Any, Any] | Map:
    """Return what the decoder makes of pairs, by a second rule: differing strings and numbers are keys of a dict."""
    unfit = (UUID, Described, Array, list, dict, Map)
    if any(isinstance(key, unfit) for key, _ in pairs) or len({key for key, _ in pairs}) < len(pairs):
        return Map(tuple(pairs))
    return dict(pairs)


values = _unprinted(
    st.recursive(
        leaves,
        lambda children: st.one_of(
            st.lists(children, max_size=4),
            maps(children),
            arrays(children),
            st.builds(Described, OF_KIND["ulong"] | OF_KIND["symbol"] | children, children),
        ),
        max_leaves=12,
    )
)
"""Any AMQP value."""


def typed(value: Any) -> Any:
    """A value with every type written beside it, so that == counts them."""
    match value:
        case Described():
            return ("described", typed(value.descriptor), typed(value.value))
        case Array():
            return ("array", value.kind, [typed(item) for item in value.items], [typed(d) for d in value.descriptors])
        case Map():
            return ("Map", [(typed(key), typed(item)) for key, item in value.pairs])
        case dict():
            return ("dict", [(typed(key), typed(item)) for key, item in value.items()])
        case list():
            return ("list", [typed(item) for item in value])
        case float():
            return (type(value), repr(value))
        case _:
            return (type(value), value)


COMPOSITES = {composite.TYPE: composite for composite in performatives.COMPOSITES.values()}
"""Name of a composite type -> class."""

symbol_maps = _unprinted(st.dictionaries(words.map(Symbol), leaves, max_size=3))


def _field_values(field: FieldType) -> st.SearchStrategy[Any]:
    kinds = field_kinds(field)
    if not kinds:
        return values
    if field.multiple:
        return st.lists(OF_KIND[kinds[0]], max_size=3).map(tuple)
    if field.type in CHOICES:
        return st.sampled_from(CHOICES[field.type])
    return st.one_of(*(_of_field_kind(kind, is_plain=field.type != "*") for kind in kinds))


def _of_field_kind(kind: str, *, is_plain: bool) -> st.SearchStrategy[Any]:
    if kind in COMPOSITES:
        return composites_named(kind)
    if kind == "map":
        return symbol_maps
    if is_plain and kind in {"ubyte", "ushort", "uint", "ulong", "timestamp"}:
        return OF_KIND[kind].map(int)
    return OF_KIND[kind]


def composites_named(name: str) -> st.SearchStrategy[Composite]:
    """Values of a composite type, any field at its default or not, as its class says."""
    make = COMPOSITES[name]
    fields = dict(zip(make.FIELDS, make.TYPES, strict=True))
    mandatory = {key: _field_values(field) for key, field in fields.items() if field.mandatory}
    optional = {key: _field_values(field) for key, field in fields.items() if not field.mandatory}
    return _unprinted(st.fixed_dictionaries(mandatory, optional=optional).map(lambda chosen: make(**chosen)))


composites = st.sampled_from(sorted(COMPOSITES)).flatmap(composites_named)
"""Any composite value."""
