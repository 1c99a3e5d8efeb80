"""The rows of links, subscriptions and kept tags in a snapshot, and the tables of a state again.

PRODUCERS   [{id, muxer, destination, container, link, sending, node, owns}]
CONSUMERS   [{id, queue, container, link, selector, owns}]
SUBSCRIPTIONS [{queue, keyed, subscription}]
SUSPENDED   [{link, keyed}]
TAGS        [{producer, tags: [base64...]}]
"""

from collections.abc import Container, Iterable, Iterator
from itertools import islice
from operator import itemgetter
from typing import Any, Final

import msgspec

from ambermq.engine.model.state import Consumer, Links, Producer, State
from ambermq.engine.model.subscription import Subscription
from ambermq.engine.model.suspended_link import SuspendedLink
from ambermq.engine.snapshots.image_blocks import in_order, map_of, sorted_items
from ambermq.snapshot.persistent_map import PersistentMap

__all__ = [
    "LinkParts",
    "SubscriptionRow",
    "SuspendedRow",
    "TagsRow",
    "subscription_rows",
    "suspended_rows",
    "tags_row_count",
    "tags_rows",
]

_TAGS_A_ROW: Final = 256


class SubscriptionRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A subscription, with its queue."""

    queue: int
    keyed: bool
    """Whether its key finds it."""
    subscription: Subscription


class SuspendedRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A suspended link."""

    link: SuspendedLink
    keyed: bool
    """Whether its key finds it."""


class TagsRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Some of the kept tags of a producer."""

    producer: int
    tags: list[bytes]


def subscription_rows(state: State) -> Iterator[SubscriptionRow]:
    """Yield a row for each subscription."""
    for queue, one in sorted_items(state.subscriptions):
        yield SubscriptionRow(queue, one.key is not None and state.subscription_queues.get(one.key) == queue, one)


def suspended_rows(state: State) -> Iterator[SuspendedRow]:
    """Yield a row for each suspended link."""
    for one in in_order(state.suspended):
        yield SuspendedRow(one, state.suspended_ids.get(one.key) == one.id)


def tags_rows(state: State) -> Iterator[TagsRow]:
    """Yield the kept tags of each producer."""
    for producer, tags in sorted_items(state.tags):
        items = map(itemgetter(0), sorted_items(tags))
        while some := list(islice(items, _TAGS_A_ROW)):
            yield TagsRow(producer, some)


def tags_row_count(state: State) -> int:
    """Return the number of rows of tags of a state."""
    return sum([-(-len(tags) // _TAGS_A_ROW) for tags in state.tags.values()])


class LinkParts:
    """The links and subscriptions that have been read so far."""

    def __init__(self) -> None:
        self.producers: dict[int, Producer] = {}
        self.consumers: dict[int, Consumer] = {}
        self.subscriptions: list[SubscriptionRow] = []
        self.suspended: list[SuspendedRow] = []
        self.tags: list[TagsRow] = []

    def take_producers(self, payload: bytes) -> None:
        """Add the producers of a block."""
        self.producers.update((one.id, one) for one in msgspec.json.decode(payload, type=list[Producer]))

    def take_consumers(self, payload: bytes) -> None:
        """Add the consumers of a block."""
        self.consumers.update((one.id, one) for one in msgspec.json.decode(payload, type=list[Consumer]))

    def take_subscriptions(self, payload: bytes) -> None:
        """Add the subscriptions of a block."""
        self.subscriptions += msgspec.json.decode(payload, type=list[SubscriptionRow])

    def take_suspended(self, payload: bytes) -> None:
        """Add the suspended links of a block."""
        self.suspended += msgspec.json.decode(payload, type=list[SuspendedRow])

    def take_tags(self, payload: bytes) -> None:
        """Add the kept tags of a block."""
        self.tags += msgspec.json.decode(payload, type=list[TagsRow])

    def fields(self, queues: Container[int]) -> dict[str, Any]:
        """Return the parts of a state that are about links; `queues` are those that there are."""
        return {
            "consumers": PersistentMap(self.consumers),
            "producers": PersistentMap(self.producers),
            "links": _links_of((node, one.id) for one in self.producers.values() for node in one.nodes),
            "receivers": _links_of((one.queue, one.id) for one in self.consumers.values() if one.queue in queues),
            **_subscribed(self.subscriptions),
            **_suspended(self.suspended, self.tags),
        }


def _subscribed(rows: list[SubscriptionRow]) -> dict[str, Any]:
    """Return the parts of a state that are about subscriptions."""
    no_locals = {
        row.queue: row.subscription.container
        for row in rows
        if row.subscription.is_no_local and row.subscription.container is not None
    }
    return {
        "subscriptions": PersistentMap({row.queue: row.subscription for row in rows}),
        "subscription_queues": PersistentMap({row.subscription.key: row.queue for row in rows if row.keyed}),
        "no_locals": PersistentMap(no_locals),
    }


def _suspended(rows: list[SuspendedRow], tags: list[TagsRow]) -> dict[str, Any]:
    """Return the parts of a state that are about suspended links and kept tags."""
    by_producer: dict[int, dict[bytes, None]] = {}
    for row in tags:
        by_producer.setdefault(row.producer, {}).update(dict.fromkeys(row.tags))
    return {
        "suspended": PersistentMap({row.link.id: row.link for row in rows}),
        "suspended_ids": PersistentMap({row.link.key: row.link.id for row in rows if row.keyed}),
        "suspended_held": sum(row.link.held for row in rows),
        "tags": PersistentMap({producer: PersistentMap(some) for producer, some in by_producer.items()}),
    }


def _links_of(pairs: Iterable[tuple[int, int]]) -> "PersistentMap[int, Links]":
    """Return the links of each node, from pairs of a node and a link."""
    links: dict[int, dict[int, None]] = {}
    for node, link in pairs:
        links.setdefault(node, {})[link] = None
    return map_of({node: map_of(some) for node, some in links.items()})
