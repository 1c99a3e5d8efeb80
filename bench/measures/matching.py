"""`python -m bench.measures.matching CLASS`: measure matching in a separate process; print one line of JSON.

100,000 attachments are in a persistent map, as in State, and in an index; 10,000 messages match one each. The rate is
compared with an index of one attachment that the same messages match, so the caches are equally cold. If a class
matches fields of messages, reading them from the bytes is included, as in a publish.
"""

import gc
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import psutil  # type: ignore[import-untyped]  # its types are a package of their own

from ambermq.engine.matching.muxer_index import MuxerIndex
from ambermq.engine.model.attachment import Argument, Attachment, Condition
from ambermq.engine.model.muxer import MuxerKind
from ambermq.protocol.amqp10.message.message import Message
from ambermq.protocol.gateway.links.routing_fields import RoutingFields
from ambermq.snapshot.persistent_map import PersistentMap

__all__ = ["LOADS", "MEASURES", "MatchLoad", "main"]

_ATTACHMENTS: Final = 100_000
_SELECTORS: Final = 1_000
_KNOWN: Final = 10_000
_ROUNDS: Final = 9
_NEW: Final = 20
_FIRST_ID: Final = 1_000_000
_MEMBER: Final = 50_000_000

_Message = tuple[str, bytes | None]
"""A destination, and the encoded message if the class matches its fields."""


@dataclass(frozen=True, slots=True)
class MatchLoad:
    """The attachments by number, one attachment for all messages, and the message for each attachment."""

    kind: MuxerKind
    argument: Callable[[int], Argument]
    everything: Argument
    message: Callable[[int], _Message]


def _encoded(properties: dict[str, Any]) -> bytes:
    return Message(application_properties=properties).encode()


LOADS: Final = {
    "wild-destination": MatchLoad(
        MuxerKind.WILD_DESTINATION,
        lambda number: f"stock.symbol-{number}.*",
        "stock.#",
        lambda number: (f"stock.symbol-{number}.trade", None),
    ),
    "property": MatchLoad(
        MuxerKind.PROPERTY,
        lambda number: (Condition("customer", has_value=True, value=f"customer-{number}"),),
        (Condition("customer"),),
        lambda number: ("", _encoded({"customer": f"customer-{number}", "size": number})),
    ),
}


def _measure_load(load: MatchLoad) -> dict[str, float]:
    messages = [load.message(number * (_ATTACHMENTS // _KNOWN)) for number in range(_KNOWN)]
    one = MuxerIndex(load.kind)
    one.add(Attachment(_FIRST_ID, _MEMBER, load.everything))
    _pass(one, messages)
    wiring, index, size = _attached(load)
    unseen = _pass(index, messages)
    # In turn, so that other load of the machine affects both.
    pairs = [(_pass(one, messages), _pass(index, messages)) for _ in range(_ROUNDS)]
    alone, known = (min(seconds) for seconds in zip(*pairs, strict=True))
    return {
        "bytes": size / len(wiring),
        "ratio": alone / known,
        "known": known / _KNOWN * 1e6,
        "unseen": unseen / _KNOWN * 1e6,
        "new": _longest_new(load, index, messages),
    }


def _attached(load: MatchLoad) -> tuple["PersistentMap[int, Attachment]", MuxerIndex, int]:
    """Return the attachments, their index, and the growth of the process in bytes."""
    before = _resident()
    wiring: PersistentMap[int, Attachment] = PersistentMap()
    index = MuxerIndex(load.kind)
    for number in range(_ATTACHMENTS):
        attachment = Attachment(_FIRST_ID + 3 * number, _MEMBER + number, load.argument(number))
        wiring = wiring.set(attachment.id, attachment)
        index.add(attachment)
    _match(index, load.message(0))
    return wiring, index, _resident() - before


def _longest_new(load: MatchLoad, index: MuxerIndex, messages: list[_Message]) -> float:
    """Return the maximum milliseconds for one more attachment and the next message, with all results cached."""
    longest = 0.0
    for number in range(_ATTACHMENTS, _ATTACHMENTS + _NEW):
        _pass(index, messages)
        attachment = Attachment(_FIRST_ID + 3 * number, _MEMBER, load.argument(number))
        began = time.perf_counter()
        index.add(attachment)
        _match(index, messages[0])
        longest = max(longest, time.perf_counter() - began)
    return longest * 1e3


def _pass(index: MuxerIndex, messages: list[_Message]) -> float:
    """Return the CPU seconds to match all messages once; each matches one attachment."""
    began = time.process_time()
    found = 0
    for message in messages:
        found += len(_match(index, message))
    seconds = time.process_time() - began
    assert found == len(messages), f"{found} attachments matched"
    return seconds


def _match(index: MuxerIndex, message: _Message) -> tuple[Attachment, ...]:
    destination, encoded = message
    return index.match(destination, None if encoded is None else RoutingFields(encoded))


def _resident() -> int:
    gc.collect()
    return int(psutil.Process().memory_info().rss)


def _measure_selectors() -> dict[str, float]:
    index = MuxerIndex(MuxerKind.SELECTOR)
    for number in range(_SELECTORS):
        text = f"region = 'eu' AND size BETWEEN {number} AND {number + 10} AND customer LIKE 'c%'"
        index.add(Attachment(_FIRST_ID + number, _MEMBER, text))
    message = ("", _encoded({"region": "eu", "size": 500, "customer": "customer-7"}))
    _match(index, message)
    seconds = []
    for _ in range(_ROUNDS):
        began = time.process_time()
        for _ in range(10):
            _match(index, message)
        seconds.append(time.process_time() - began)
    return {"evaluations": 10 * _SELECTORS / min(seconds)}


MEASURES: Final[dict[str, Callable[[], dict[str, float]]]] = {
    "wild-destination": lambda: _measure_load(LOADS["wild-destination"]),
    "property": lambda: _measure_load(LOADS["property"]),
    "selector": _measure_selectors,
}
"""The measurement of each class of muxers."""


def main(name: str) -> None:
    """Measure one class and print its figures."""
    print(json.dumps(MEASURES[name]()))


if __name__ == "__main__":
    main(sys.argv[1])
