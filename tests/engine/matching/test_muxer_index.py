"""An index answers as a matcher would that asks one attachment after the other, whatever came and went before."""

from collections.abc import Collection, Iterator
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ambermq.engine.errors import SelectorError
from ambermq.engine.matching import hit_set, matchers
from ambermq.engine.matching.muxer_index import MuxerIndex
from ambermq.engine.matching.term_index import Term, TermIndex
from ambermq.engine.model.attachment import Attachment, Condition
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.patterns import pattern_trie
from tests.engine.routing.naive import Given, naive_match
from tests.engine.routing.wirings import SEPARATORS, arguments, fields, texts


@pytest.fixture(autouse=True, scope="module", params=["bounds as they are", "bounds that few attachments reach"])
def bounds(request: pytest.FixtureRequest) -> Iterator[None]:
    """Dense sets, ranges searched by bisection and numbers that close up, with few attachments too."""
    with pytest.MonkeyPatch.context() as patch:
        if "few" in request.param:
            patch.setattr(hit_set, "_DENSE_COUNT_MIN", 2)
            patch.setattr(pattern_trie, "_FEW", 0)
            patch.setattr(pattern_trie, "_ONE_BY_ONE_MAX", 1)
            patch.setattr(matchers, "_HOLES_MIN", 1)
        yield


class Wiring(RuleBasedStateMachine):
    """Attachments come and go in any order; messages of all kinds are matched in between."""

    kind: ClassVar[MuxerKind]

    @initialize(separator=st.sampled_from(SEPARATORS), cached_max=st.sampled_from((0, 2, 100)))
    def declare(self, separator: str, cached_max: int) -> None:
        self.separator = separator
        self.index = MuxerIndex(self.kind, separator=separator, cached_max=cached_max)
        self.attached: dict[int, Attachment] = {}
        self.asked: list[tuple[str, Given]] = []

    @rule(data=st.data(), ids=st.lists(st.integers(1, 60), min_size=1, max_size=8, unique=True))
    def attach(self, data: st.DataObject, ids: list[int]) -> None:
        for number in ids:
            if number not in self.attached:
                argument = data.draw(arguments(self.kind, self.separator))
                self.attached[number] = Attachment(number, 7, argument)
                self.index.add(self.attached[number])

    @precondition(lambda self: self.attached)
    @rule(data=st.data())
    def detach(self, data: st.DataObject) -> None:
        gone = data.draw(st.lists(st.sampled_from(sorted(self.attached)), min_size=1, unique=True))
        for number in gone:
            self.index.remove(self.attached.pop(number))

    @rule(data=st.data())
    def publish(self, data: st.DataObject) -> None:
        asked = data.draw(texts(self.separator)), data.draw(fields(self.separator))
        self.asked = [*self.asked[-3:], asked]

    @invariant()
    def matches_as_told(self) -> None:
        """Also what is remembered from an earlier wiring must not be told again."""
        for destination, message in getattr(self, "asked", ()):
            expected = naive_match(self.kind, self.attached.values(), self.separator, destination, message)
            assert list(self.index.match(destination, message)) == expected

    @invariant()
    def counts(self) -> None:
        """Its length is that of the wiring."""
        if hasattr(self, "index"):
            assert len(self.index) == len(self.attached)


@pytest.mark.parametrize("kind", MuxerKind)
def test_an_index_matches_as_a_list_would(kind: MuxerKind) -> None:
    """Whatever is attached and detached in whatever order, and whatever was remembered before."""
    few = settings(max_examples=12, stateful_step_count=12, deadline=None, database=None)
    run_state_machine_as_test(type(f"Wiring of {kind.name}", (Wiring,), {"kind": kind}), settings=few)


@pytest.mark.parametrize("kind", [MuxerKind.PROPERTY, MuxerKind.WILD_PROPERTY, MuxerKind.SELECTOR])
def test_without_fields_nothing_matches(kind: MuxerKind) -> None:
    """A message that was not looked into has no property."""
    index = MuxerIndex(kind)
    index.add(Attachment(1, 7, "a IS NULL" if kind is MuxerKind.SELECTOR else (Condition("a"),)))
    assert index.match("a", None) == ()


def test_a_selector_that_is_none_changes_nothing() -> None:
    """The error is that of the parser, and the index is as it was."""
    index = MuxerIndex(MuxerKind.SELECTOR)
    with pytest.raises(SelectorError):
        index.add(Attachment(1, 7, "a ="))
    assert len(index) == 0
    assert index.match("", Given({})) == ()


def test_peers_turn_over_what_is_remembered_and_no_more() -> None:
    """New destinations and texts push out those seen before them, long ones more of them."""
    wild = MuxerIndex(MuxerKind.WILD_DESTINATION, cached_max=4)
    wild.add(Attachment(1, 7, "#"))
    for number in range(20):
        wild.match(f"d{number}", None)
    matcher: Any = wild._matcher
    assert len(matcher._recent) == 4
    for long in "de":
        wild.match(long * 2_400, None)
    assert len(matcher._recent) == 1
    wild.match("d" * 1_000_000, None)
    assert len(matcher._recent) == 1


def test_nothing_stays_of_what_was_detached() -> None:
    """Fields, terms and selectors go with the last attachment that names them."""
    for kind, argument in (
        (MuxerKind.WILD_DESTINATION, "a.#"),
        (MuxerKind.PROPERTY, (Condition("a"), Condition("b", True, 1))),
        (MuxerKind.SELECTOR, "a = 1"),
    ):
        index: Any = MuxerIndex(kind)
        attachment = Attachment(1, 7, argument)
        index.add(attachment)
        index.remove(attachment)
        assert not index._matcher._index._fields
        assert not getattr(index._matcher, "_selectors", None)


@pytest.mark.parametrize("kind", [MuxerKind.SIMPLE, MuxerKind.DESTINATION, MuxerKind.WILD_DESTINATION])
def test_a_removal_moves_few_attachments(kind: MuxerKind, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are: the index without holes is built beside the other, and no hole is left in the end."""
    index, moved = MuxerIndex(kind), 0
    attachments = [Attachment(number, 7, f"d{number}") for number in range(1, 4001)]
    for attachment in attachments:
        index.add(attachment)
    add = TermIndex.add

    def counted(self: TermIndex, attachment: Attachment, terms: Collection[Term]) -> None:
        nonlocal moved
        moved += 1
        add(self, attachment, terms)

    monkeypatch.setattr(TermIndex, "add", counted)
    most = 0
    for attachment in attachments[:3900]:
        before = moved
        index.remove(attachment)
        most = max(most, moved - before)
    assert most == matchers._MOVES
    assert moved > 1000
    assert index._matcher._index.numbers.end < 1000
    expected = attachments[3900:] if kind is MuxerKind.SIMPLE else attachments[-1:]
    assert index.match("d4000", None) == tuple(expected)


def test_a_selector_that_exists_works_under_any_limits() -> None:
    """What was declared under a larger limit is matched: a limit that was lowered ends no broker."""
    index = MuxerIndex(MuxerKind.SELECTOR)
    text = " OR ".join(f"a{number} = '{'x' * 40}'" for number in range(200))
    assert len(text) > 8192
    index.add(Attachment(1, 1, text))
