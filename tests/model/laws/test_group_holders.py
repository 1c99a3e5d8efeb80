"""Tests of the law of groups: two consumers never hold messages of one group, unless its binding has ended."""

import pytest

from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.events import Acquired
from tests.model.laws.group_holders import GroupHolders

GROUP, LAST = 8, 9
ONE, TWO = 1, 2


def _dispatch(holders: GroupHolders, offset: int, consumer: int, codes: dict[int, int]) -> None:
    holders.begin(Acquired(offset, 0, 7, (consumer,), pack_words([entry << 16 for entry in codes])))
    for entry, code in codes.items():
        holders.acquired(consumer, entry, code)
        holders.note_newest((7, 4, code, consumer), entry, consumer)


def test_a_group_that_two_consumers_hold_is_found() -> None:
    """In one dispatch or in two; not if the first one holds nothing more."""
    for places, is_found in (({10: ONE, 11: TWO}, True), ({10: 0, 11: TWO}, False)):
        holders = GroupHolders()
        _dispatch(holders, 100, ONE, {10: GROUP})
        holders.end_round({7: {10: ONE}})
        _dispatch(holders, 101, TWO, {11: GROUP})
        if is_found:
            with pytest.raises(AssertionError, match="two consumers hold a group"):
                holders.end_round({7: places})
        else:
            holders.end_round({7: places})


def test_a_binding_ends_with_its_last_message() -> None:
    """The event of the next binding may come first: there is one for each consumer."""
    holders = GroupHolders()
    _dispatch(holders, 100, TWO, {12: GROUP})
    _dispatch(holders, 101, ONE, {10: GROUP, 11: LAST})
    holders.end_round({7: {10: ONE, 11: ONE, 12: TWO}})


def test_a_consumer_that_gets_its_messages_out_of_order_is_found() -> None:
    """In one dispatch."""
    with pytest.raises(AssertionError, match="overtakes"):
        _dispatch(GroupHolders(), 100, ONE, {11: GROUP, 10: GROUP})
