"""Muxers at the `$management` node: requests of type `org.ambermq.muxer` become commands."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from ambermq.engine.commands import Command, DeclareMuxer, DeleteMuxer, Inspect, UpdateMuxer
from ambermq.engine.errors import Refused
from ambermq.engine.model.muxer import Muxer, MuxerKind, Options
from ambermq.engine.model.state import State
from ambermq.protocol.management.paging import page_of, query_window
from ambermq.protocol.management.request_fields import (
    NO_NUMBERS,
    flag_field,
    name_property,
    refuse_read_only,
    refuse_unknown,
)
from ambermq.protocol.management.sorted_ids import Orders

__all__ = ["MUXER_ATTRIBUTES", "MUXER_OPERATIONS", "MUXER_TYPE", "muxer_attributes"]

MUXER_TYPE: Final = "org.ambermq.muxer"
MUXER_ATTRIBUTES: Final = (
    "name",
    "id",
    "class",
    "attachments",
    "producers",
    "separator",
    "probability",
    "seed",
    "draws",
)
_NOUN: Final = "muxer"
_SETTINGS: Final = ("class", "separator", "probability", "seed")
"""The attributes that a request may set; the others are read-only."""
_KINDS: Final = {kind.text: kind for kind in MuxerKind}
_WILD: Final = (MuxerKind.WILD_DESTINATION, MuxerKind.WILD_PROPERTY)


def muxer_attributes(state: State, muxer: Muxer) -> dict[str, Any]:
    """Return the attributes of a muxer. An attribute that its class does not have is null."""
    is_lossy = muxer.kind is MuxerKind.LOSSY
    values = (
        muxer.name,
        muxer.id,
        muxer.kind.text,
        len(muxer.attachments),
        len(state.links.get(muxer.id, ())),
        muxer.options.separator if muxer.kind in _WILD else None,
        muxer.options.probability if is_lossy else None,
        muxer.options.seed if is_lossy else None,
        state.draws.get(muxer.id, 0) if is_lossy else None,
    )
    return dict(zip(MUXER_ATTRIBUTES, values, strict=True))


def _create(request: Any, properties: Mapping[str, Any], body: Mapping[str, Any], _max: int) -> Command:
    refuse_unknown(body, _NOUN, *_SETTINGS)
    name, kind, options = name_property(properties, _NOUN), _kind(body), Options()
    options = Options(
        separator=_option(body, "separator", str, options.separator),
        probability=float(_option(body, "probability", int | float, options.probability)),
        seed=int(_option(body, "seed", int, options.seed)),
    )
    request.status = 201
    return DeclareMuxer(request, name, kind, options)


def _update(request: Any, properties: Mapping[str, Any], body: Mapping[str, Any], _max: int) -> Command:
    refuse_read_only(body, _NOUN, *_SETTINGS)
    name = name_property(properties, _NOUN)
    probability, seed = _option(body, "probability", int | float, None), _option(body, "seed", int, None)
    return UpdateMuxer(
        request,
        name,
        partial(_muxer_of, name),
        None if probability is None else float(probability),
        None if seed is None else int(seed),
        None if body.get("class") is None else _kind(body),
        _option(body, "separator", str, None),
    )


def _kind(body: Mapping[str, Any]) -> MuxerKind:
    kind = _KINDS.get(body["class"]) if isinstance(body.get("class"), str) else None
    if kind is None:
        known = ", ".join(_KINDS)
        raise Refused("amqp:invalid-field", f"unknown class {body.get('class')!r:.80} of muxer: expected {known}")
    return kind


def _option(body: Mapping[str, Any], key: str, kind: Any, default: Any) -> Any:
    value = body.get(key)
    if value is None:
        return default
    if not isinstance(value, kind) or isinstance(value, NO_NUMBERS):
        expected = {str: "text", int: "a whole number"}.get(kind, "a number")
        raise Refused("amqp:invalid-field", f"{key!r} must be {expected}, found {value!r:.80}")
    return str(value) if kind is str else value


def _read(request: Any, properties: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> Command:
    return Inspect(request, partial(_muxer_of, name_property(properties, _NOUN)))


def _muxer_of(name: str, state: State) -> dict[str, Any] | None:
    muxer = state.muxer_named(name)
    return None if muxer is None else muxer_attributes(state, muxer)


def _delete(request: Any, properties: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> Command:
    request.status = 204
    return DeleteMuxer(
        request,
        name_property(properties, _NOUN),
        flag_field(properties, "if-unused"),
        flag_field(properties, "if-empty"),
    )


def _query(request: Any, properties: Mapping[str, Any], body: Mapping[str, Any], results_max: int) -> Command:
    orders: Orders = request.orders
    return Inspect(request, partial(_page, orders, *query_window(properties, body, _NOUN, results_max)))


def _page(orders: Orders, offset: int, count: int, names: tuple[str, ...], state: State) -> dict[str, Any]:
    ids = orders.muxers(state)
    rows = (muxer_attributes(state, state.muxers[one]) for one in ids[offset : offset + count])
    return page_of(rows, len(ids), names, MUXER_ATTRIBUTES)


MUXER_OPERATIONS: Final[Mapping[str, Callable[[Any, Mapping[str, Any], Mapping[str, Any], int], Command]]] = {
    "CREATE": _create,
    "READ": _read,
    "UPDATE": _update,
    "DELETE": _delete,
    "QUERY": _query,
}
"""Operation to the function that makes its command of request, application properties, body, and page rows."""
