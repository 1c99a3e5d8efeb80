"""The story of one message is what the fold of everything says of it."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.entries.discard_reason import MoveReason
from ambermq.engine.entries.entry_word import unpack_words
from ambermq.engine.events import Attached, Due, Duplicated, Moved, Published, SetAside
from ambermq.engine.fold.apply import apply
from ambermq.engine.history.message_steps import MessagePlace, MessagePlaceState
from ambermq.engine.history.message_story import MessageStory, find_message, open_search, story_of
from ambermq.engine.history.past import Past, PastError, PastKind, open_past
from ambermq.engine.model.state import EMPTY_STATE, State
from ambermq.engine.records.index_keys import touches_of
from ambermq.log.buffer import Buffer
from ambermq.log.index.segment_index import build
from ambermq.log.manifest.manifest import Horizon
from ambermq.log.read.search import Search
from ambermq.log.storage.disk import DiskStorage
from tests.engine.history.test_past import name_snapshots
from tests.engine.lived import LIVED, Lived, singles, states_of

PROOF = settings(max_examples=6, deadline=None)


@contextmanager
def lived_in(seed: int, lives: list[bool], *, indexed: bool) -> Iterator[tuple[Lived, Past, Search]]:
    """Yield random lives, their past, and look-ups with or without indexes."""
    with tempfile.TemporaryDirectory() as directory:
        lived = Lived(Path(directory), seed)
        for number, cleanly in enumerate(lives):
            if number:
                lived.start()
            lived.live(50)
            lived.settle_down()
            lived.end(cleanly=cleanly)
        with open_past(directory, LIVED) as past:
            if indexed:
                index_all(past)
            search = open_search(past)
            yield lived, past, search
            search.close()


def index_all(past: Past) -> None:
    """Build the index of every sealed segment."""
    for sealed in past.reader.manifest.sealed:
        segment = sealed.at(past.reader.directory)
        Path(segment.path.removesuffix(".log") + ".index").unlink(missing_ok=True)
        file = DiskStorage().open(segment.path)
        build(file, segment, batch_bytes_max=LIVED.batch_bytes_max, touches_of=touches_of)
        file.close()


def place_in(state: State, queue: int, word: bytes) -> tuple[MessagePlaceState, int, int]:
    """Where a message is in a state: on a queue, with whom, and its failed deliveries."""
    known = state.queues.get(queue)
    if known is None:
        return MessagePlaceState.ARCHIVED, 0, -1
    entry = known.entries.get(int.from_bytes(word, "little") >> 16)
    count = entry.count if entry else 0
    for consumer, held in known.acquired.items():
        if held.remove(word)[0]:
            return MessagePlaceState.ACQUIRED, consumer, count
    if any(words.remove(word)[0] for words in (*known.available_lists, known.delayed)):
        return MessagePlaceState.AVAILABLE, 0, count
    if known.scheduled.remove(word)[0]:
        return MessagePlaceState.SCHEDULED, 0, count
    if known.aside.remove(word)[0]:
        return MessagePlaceState.SET_ASIDE, 0, count
    return MessagePlaceState.ARCHIVED, 0, -1


_GONE: Final = MessagePlaceState.ARCHIVED
Places = dict[tuple[int, int], tuple[MessagePlaceState, int, int]]


def way_of(lived: Lived, published: Published) -> list[tuple[int, Places]]:
    """Each event's offset at which the place of a message changed, and the places after it, by folding everything.

    A place is on a queue, by an entry there; a move adds another one.
    """
    state, way = EMPTY_STATE, list[tuple[int, Places]]()
    entries = {(queue, int.from_bytes(published.words, "little")): None for queue in published.queues}
    for event in singles(lived.events()):
        before, state = state, apply(state, event)
        if event.offset < published.offset:
            continue
        is_told = False
        if isinstance(event, Moved):
            word = int.from_bytes(event.words, "little")
            source = before.queues.get(event.source)
            if (event.source, word) in entries and source is not None and source.holds(word):
                if event.reason is MoveReason.DUE:
                    # It has another entry now, which is no other place.
                    del entries[event.source, word]
                entries |= {(target, event.offset << 16 | word & 0xFFFF): None for target in event.targets}
                is_told = True
        elif isinstance(event, SetAside | Due):
            # A rejected message is set aside by its outcome, and the event says so. A delayed message counts as
            # available in its story, so the end of its delay changes no place.
            is_told = any(event.queue == queue and word in unpack_words(event.words) for queue, word in entries)
        elif isinstance(event, Duplicated):
            # It tells of the first message, which stays where it is.
            is_told = any(queue in event.queues and word in unpack_words(event.words) for queue, word in entries)
        places = {one: place_in(state, one[0], one[1].to_bytes(8, "little")) for one in entries}
        if not way or places != way[-1][1] or is_told:
            way.append((event.offset, places))
    return way


def check(lived: Lived, life: MessageStory) -> None:
    """The story has a step for each change, and ends where the message is."""
    way = way_of(lived, life.published)
    assert sorted({step.offset for step in life.steps}) == [offset for offset, _ in way]
    assert [(place.queue, place.word) for place in life.places] == list(way[-1][1])
    for place in life.places:
        state, consumer, count = way[-1][1][place.queue, place.word]
        assert (place.state, place.consumer) == (state, consumer)
        assert place.state is MessagePlaceState.ARCHIVED or place.count == count


@pytest.mark.parametrize("indexed", [True, False])
@PROOF
@given(seed=st.integers(0, 1 << 32), lives=st.lists(st.booleans(), min_size=1, max_size=3), data=st.data())
def test_the_story_is_what_the_fold_says(seed: int, lives: list[bool], data: st.DataObject, *, indexed: bool) -> None:
    """For any message of random lives, with indexes and without: a step for each change of its place, no other."""
    with lived_in(seed, lives, indexed=indexed) as (lived, past, search):
        published = [event for event in singles(lived.events()) if type(event) is Published]
        for event in published and data.draw(st.lists(st.sampled_from(published), min_size=1, max_size=5)):
            check(lived, story_of(past, search, event.offset))


def begins_with(head: bytes, body: Buffer) -> bool:
    """Whether a message begins so, which stands for its id here."""
    return bytes(body[:8]) == head


@PROOF
@given(seed=st.integers(0, 1 << 32), indexed=st.booleans())
def test_messages_are_found_by_their_id(seed: int, *, indexed: bool) -> None:
    """Hashes collide: all messages of the hash that are the one meant, large ones too, and no other."""
    with lived_in(seed, [True, False], indexed=indexed) as (lived, past, search):
        published = {event.offset: event for event in singles(lived.events()) if type(event) is Published}
        bodies = {offset: bytes(past.body(offset, event.chunks)) for offset, event in published.items()}
        for head in {body[:8] for body in bodies.values()}:
            same = [offset for offset, body in bodies.items() if body.startswith(head)]
            assert find_message(past, search, range(1, 8), partial(begins_with, head)) == same
            alone = [find_message(past, search, [number], partial(begins_with, head)) for number in range(1, 8)]
            assert sorted(offset for some in alone for offset in some) == same


@PROOF
@given(seed=st.integers(0, 1 << 32), lives=st.lists(st.booleans(), min_size=1, max_size=2), data=st.data())
def test_before_the_horizon_a_story_begins_with_where_the_message_was(
    seed: int, lives: list[bool], data: st.DataObject
) -> None:
    """Of a message that was live at the horizon: the steps since, and where it is, as if nothing were compacted."""
    with lived_in(seed, lives, indexed=False) as (lived, past, _):
        states = states_of(lived.events())
        base = data.draw(st.sampled_from(sorted(states)[5:]))
        published = [event for event in singles(lived.events()) if type(event) is Published and event.offset <= base]
        name_snapshots(lived.directory, states, [base + 1], horizon=Horizon(base + 1, states[base].time_us))
        with open_past(lived.directory, LIVED) as shortened:
            search = open_search(shortened)
            for event in published:
                if base + 1 < past.end and _lives(states[base], event):
                    life = story_of(shortened, search, event.offset)
                    way = [offset for offset, _ in way_of(lived, event) if offset > base]
                    assert not life.is_whole
                    assert sorted({step.offset for step in life.steps[1:]}) == way
                    # A place that the message has left before the horizon is not known.
                    now = [place for place in way_of(lived, event)[-1][1].values() if place[0] is not _GONE]
                    assert [place for place in map(place_of, life.places) if place[0] is not _GONE] == now
                    assert set(life.queues) >= set(event.queues)
                    assert life.producer is None or life.producer.id == event.producer
            search.close()


def _lives(state: State, event: Published) -> bool:
    return any(place_in(state, queue, event.words)[0] is not MessagePlaceState.ARCHIVED for queue in event.queues)


def place_of(place: MessagePlace) -> tuple[MessagePlaceState, int, int]:
    """A place as `place_in` has it."""
    return place.state, place.consumer, -1 if place.state is MessagePlaceState.ARCHIVED else place.count


@pytest.fixture(scope="module")
def told() -> Iterator[tuple[Lived, Past, Search]]:
    """One history that all read."""
    with lived_in(11, [True, False, True], indexed=True) as found:
        yield found


def test_a_story_names_links_queues_and_the_reason(told: tuple[Lived, Past, Search]) -> None:
    """The story has producer, destination, muxer, queues with their attachments, and consumers."""
    lived, past, search = told
    events = lived.events()
    attached = [event for event in events if type(event) is Attached]
    for event in [event for event in singles(events) if type(event) is Published][::5]:
        life = story_of(past, search, event.offset)
        assert life.is_whole
        assert life.producer is not None
        name = life.producer.destination
        # A dead letter has been on other queues too.
        assert name in life.queues.values()
        assert list(life.muxers.values()) == ["QUEUE"]
        (route,) = life.routes
        wired = [one.offset for one in attached if one.member == route.queue and one.offset < event.offset]
        assert route.attached == wired[-1]
        for step in life.steps[1:]:
            assert not step.link or life.links[step.link].queue == step.queue


def test_an_offset_without_a_message_has_no_story(told: tuple[Lived, Past, Search]) -> None:
    """Another event's offset, one in the future, a negative one: told as such."""
    lived, past, search = told
    for offset in (lived.events()[0].offset, past.end, past.end + 5, -1):
        with pytest.raises(PastError, match=f"{offset}") as caught:
            story_of(past, search, offset)
        assert caught.value.kind is PastKind.NO_SUCH_OFFSET
