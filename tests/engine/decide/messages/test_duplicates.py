"""Duplicates: a queue with a dedup window takes a message-id once within it, and drops nothing else."""

from collections import OrderedDict
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import (
    AttachMember,
    BeginTransaction,
    DeclareMuxer,
    DeleteQueue,
    Discharge,
    Publish,
    PurgeQueue,
    Transaction,
    UpdateQueue,
)
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import PublishDone, RefusedCommand
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.engine.events import Duplicated, Identified, Published
from ambermq.engine.events.registry import NUMBERS
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.selectors.fields import ABSENT, Added
from ambermq.engine.settings.queue_settings import DEAD_LETTER, DROP_HEAD
from ambermq.log.buffer import Buffer
from tests.engine.decide.messages.test_dead_letters import bodies_of, declare
from tests.engine.decide.messages.test_expiry import wait
from tests.engine.rig import COLD, Rig
from tests.log.lives import DIRECTORY
from tests.log.simulated import SimulatedStorage

SECOND = 1_000_000


class _Fields:
    """The fields of a test message: its id is a text before the bar, a number after a hash."""

    def __init__(self, body: Buffer, _added: Added = (), /) -> None:
        self._text = bytes(body).decode().partition("|")[0]

    def get(self, name: str) -> object:
        if name != "properties.message-id" or not self._text:
            return ABSENT
        return int(self._text[1:]) if self._text.startswith("#") else self._text


def new_rig(storage: SimulatedStorage | None = None, *, now_us: int = SECOND, **limits: int) -> Rig:
    return Rig(storage, config=EngineConfig(**limits), fields_of=_Fields, now_us=now_us)  # type: ignore[arg-type]


def restarted(rig: Rig) -> Rig:
    """Return the next life; its fold is what this one has lived."""
    rig.loop.make_due()
    rig.do()
    live, config = rig.loop.state, rig.loop.config
    rig.kill()
    later = Rig(rig.storage, config=config, fields_of=_Fields, now_us=rig.now_us)
    assert later.recovered == live
    return later


def run(producer: int, *bodies: bytes, **values: object) -> Publish:
    """Return a run of messages; one that begins with a bar has no id. All ids have one hash: it must not matter."""
    hashes = [0 if body.startswith(b"|") else 7 for body in bodies]
    command = Publish("link", producer, 0, list(bodies), hashes, sum(map(len, bodies)))
    for name, value in values.items():
        setattr(command, name, value)
    return command


def outcomes(effects: Sequence[object]) -> list[OutcomeKind]:
    """Return the outcome of each message of a run, by its delivery-id."""
    found = sorted((one.first_id, one.count, one.kind) for one in effects if type(one) is PublishDone)
    return [kind for _, count, kind in found for _ in range(count)]


def test_an_id_is_stored_once() -> None:
    """By its type and value, whatever its hash; a message without an id always; all are accepted."""
    rig = new_rig()
    declare(rig, "q", dedup_window_ms=1000)
    producer = rig.producer()
    effects = rig.do(run(producer, b"1|a", b"|b", b"#1|c", b"1|d", b"|b", b"2|e", b"#1|f"))
    assert outcomes(effects) == [OutcomeKind.ACCEPTED] * 7
    assert rig.queue().counters.duplicates == 2
    rig = restarted(rig)
    rig.do(run(rig.producer(), b"2|g", b"3|h"))
    assert bodies_of(rig, "q") == [b"1|a", b"|b", b"#1|c", b"|b", b"2|e", b"3|h"]


def test_a_queue_without_a_window_stores_all() -> None:
    """And its log has no record of ids."""
    rig = new_rig()
    rig.do(run(rig.producer(), b"1|a", b"1|a"))
    assert bodies_of(rig, "q") == [b"1|a", b"1|a"]
    assert 39 not in {one for batch in rig.batches() for one in batch}


def test_the_window_begins_with_the_first_message() -> None:
    """A duplicate does not make it longer, and an accepted, purged or expired message does not end it."""
    rig = new_rig()
    declare(rig, "q", dedup_window_ms=1000)
    producer = rig.producer()
    rig.do(run(producer, b"1|a"))
    rig.do(PurgeQueue("key", "q"))
    wait(rig, SECOND - 1)
    rig.do(run(producer, b"1|b"))
    assert (rig.queue().depth, rig.queue().counters.duplicates) == (0, 1)
    wait(rig, 1)
    rig.do(run(producer, b"1|c"))
    assert bodies_of(rig, "q") == [b"1|c"]


def test_a_step_of_the_clock_forgets_nothing() -> None:
    """Nor does it keep an id for longer."""
    rig = new_rig()
    declare(rig, "q", dedup_window_ms=1000)
    rig.do(run(rig.producer(), b"1|a"))
    rig.loop.correct_clock(3600 * SECOND, (rig.now_us, rig.now_us + 3600 * SECOND))
    rig.do(run(rig.producer(), b"1|b"))
    assert rig.queue().depth == 1
    wait(rig, SECOND)
    rig.do(run(rig.producer(), b"1|c"))
    assert rig.queue().depth == 2


def test_the_tag_of_a_duplicate_is_kept() -> None:
    """Its sender may ask for the outcome after a loss of its connection; by then the window may be over."""
    rig = new_rig()
    declare(rig, "q", dedup_window_ms=1000)
    producer = rig.producer()
    for body, tag in ((b"1|a", b"a"), (b"1|b", b"b"), (b"1|b", b"b")):
        assert outcomes(rig.do(run(producer, body, tag=tag))) == [OutcomeKind.ACCEPTED]
    assert (rig.queue().depth, rig.queue().counters.duplicates) == (1, 1)
    assert sorted(rig.loop.state.tags[producer]) == [b"a", b"b"]
    wait(rig, SECOND)
    assert outcomes(rig.do(run(producer, b"1|b", tag=b"b"))) == [OutcomeKind.ACCEPTED]
    assert rig.queue().depth == 1


def test_the_oldest_ids_are_forgotten_first() -> None:
    """A queue remembers dedup_ids_max of them; so a run is decided as its messages one by one."""
    rig = new_rig(dedup_ids_max=2)
    declare(rig, "q", dedup_window_ms=60_000)
    rig.do(run(rig.producer(), b"1|a", b"2|a", b"1|b", b"3|a", b"1|c", b"3|b", b"2|b"))
    assert (len(rig.queue().ids), rig.queue().counters.duplicates) == (2, 2)
    assert bodies_of(restarted(rig), "q") == [b"1|a", b"2|a", b"3|a", b"1|c", b"2|b"]


def test_a_deleted_queue_forgets() -> None:
    """Another queue of its name knows nothing; and the list of such queues is that of the state."""
    rig = new_rig()
    for expected in (1, 1):
        declare(rig, "q", dedup_window_ms=60_000)
        rig.do(run(rig.producer(), b"1|a"))
        assert (rig.queue().depth, [*rig.loop.state.deduplicating]) == (expected, [rig.queue().id])
        rig.do(DeleteQueue("key", "q"))
        assert not rig.loop.state.deduplicating


def test_a_queue_whose_window_is_switched_off_forgets() -> None:
    """Whatever it is set to later."""
    rig = new_rig()
    declare(rig, "q", dedup_window_ms=60_000)
    rig.do(run(rig.producer(), b"1|a"))
    rig.do(UpdateQueue("key", "q", lambda _state: {}, {"dedup_window_ms": 0}))
    assert not len(rig.queue().ids)
    rig.do(UpdateQueue("key", "q", lambda _state: {}, {"dedup_window_ms": 60_000}))
    rig.do(run(rig.producer(), b"1|b", b"1|c"))
    assert bodies_of(restarted(rig), "q") == [b"1|a", b"1|b"]


def test_a_refused_message_leaves_no_id() -> None:
    """A full queue takes it when it has room; a duplicate needs none."""
    rig = new_rig()
    declare(rig, "q", dedup_window_ms=60_000, messages_max=2)
    producer = rig.producer()
    effects = rig.do(run(producer, b"1|a", b"1|a", b"2|a", b"3|a", b"1|b", b"3|b", b"2|b"))
    accepted, rejected = OutcomeKind.ACCEPTED, OutcomeKind.REJECTED
    expected = [accepted, accepted, accepted, rejected, accepted, rejected, accepted]
    assert outcomes(effects) == expected
    rig.do(PurgeQueue("key", "q"))
    rig.do(run(producer, b"3|c", b"2|c"))
    assert bodies_of(restarted(rig), "q") == [b"3|c"]


@pytest.mark.parametrize("overflow", [DROP_HEAD, DEAD_LETTER])
def test_what_made_room_is_remembered(overflow: str) -> None:
    """Ids outlive their messages; the dead-letter queue does not look at ids."""
    rig = new_rig()
    declare(rig, "dead", dedup_window_ms=60_000)
    rig.do(run(rig.producer("dead"), b"1|x"))
    declare(rig, "q", dedup_window_ms=60_000, messages_max=1, overflow=overflow, dead_letter="dead")
    rig.do(run(rig.producer(), b"1|a", b"2|a", b"1|b", b"2|b", b"3|a"))
    assert rig.queue().counters.duplicates == 2
    rig = restarted(rig)
    assert bodies_of(rig, "q") == [b"3|a"]
    dead = [b"1|x", b"1|a", b"2|a"] if overflow == DEAD_LETTER else [b"1|x"]
    assert bodies_of(rig, "dead") == dead


def _fan_out(rig: Rig, **windows: int) -> int:
    rig.do(DeclareMuxer("key", "all", MuxerKind.SIMPLE))
    for name, window_ms in windows.items():
        declare(rig, name, dedup_window_ms=window_ms)
        rig.do(AttachMember("key", "all", name))
    return rig.producer("/muxers/all/x")


def test_each_queue_of_a_fan_out_decides_by_itself() -> None:
    """A message that all have already is accepted, and its body is in no record."""
    rig = new_rig()
    producer = _fan_out(rig, a=1000, b=5000, c=0)
    rig.do(run(producer, b"1|x", b"2|x"))
    wait(rig, 2 * SECOND)
    rig.do(run(producer, b"1|y", b"3|y", b"1|z"))
    rig.do(DeleteQueue("key", "c"))
    rig.do(run(producer, b"1|only-here"))
    rig = restarted(rig)
    assert rig.queue("a").counters.duplicates == 2
    assert rig.queue("b").counters.duplicates == 3
    assert bodies_of(rig, "a") == [b"1|x", b"2|x", b"1|y", b"3|y"]
    assert bodies_of(rig, "b") == [b"1|x", b"2|x", b"3|y"]
    rig.kill()
    segments = [f"{DIRECTORY}/segments/{name}" for name in rig.storage.listdir(f"{DIRECTORY}/segments")]
    assert not any(b"only-here" in bytes(rig.storage.content(path)) for path in segments)


@pytest.mark.parametrize("size", [0, 20, 28, 34, 36])
def test_a_run_with_its_ids_fits_into_batches(size: int) -> None:
    """However small they are; each part of it has its own ids."""
    rig = new_rig(chunk_bytes=COLD.batch_bytes_max // 2)
    declare(rig, "q", dedup_window_ms=60_000)
    bodies = [b"%d.%d|" % (size, number) + bytes(size) for number in range(200)]
    rig.do(run(rig.producer(), *bodies, *bodies))
    assert (rig.queue().depth, rig.queue().counters.duplicates) == (200, 200)
    assert restarted(rig).queue().depth == 200


def test_a_fan_out_in_parts_is_known_again() -> None:
    """A message for more queues than a tick takes."""
    rig = new_rig(tick_changes_max=2)
    names = [f"q{number}" for number in range(7)]
    producer = _fan_out(rig, **{name: 1000 * (number % 3) for number, name in enumerate(names)})
    rig.do(run(producer, b"1|a", b"2|a", b"1|b", b"|c"))
    rig = restarted(rig)
    rig.do(run(rig.producer("/muxers/all/x"), b"2|d"))
    for number, name in enumerate(names):
        every = [b"1|a", b"2|a", b"1|b", b"|c", b"2|d"]
        assert bodies_of(rig, name) == ([b"1|a", b"2|a", b"|c"] if number % 3 else every), name


def test_a_transaction_is_decided_at_its_commit() -> None:
    """In order, by what the queue has got until then; a rollback leaves no id."""
    rig = new_rig()
    declare(rig, "q", dedup_window_ms=60_000)
    producer = rig.producer()
    first, second, third = (Transaction(bytes([number])) for number in range(3))
    for one in (first, second, third):
        rig.do(BeginTransaction(one))
    rig.do(run(producer, b"1|a", b"2|a", b"1|b", transaction=first))
    rig.do(run(producer, b"2|c", b"3|c", transaction=second))
    rig.do(run(producer, b"4|d", transaction=third))
    rig.do(run(producer, b"1|e"))
    rig.do(Discharge("key", third, fails=True))
    effects = rig.do(Discharge("key", second), Discharge("key", first))
    assert not [one for one in effects if type(one) is RefusedCommand]
    rig.do(run(producer, b"4|f", b"3|f"))
    assert rig.queue().counters.duplicates == 4
    rig = restarted(rig)
    assert bodies_of(rig, "q") == [b"1|e", b"2|c", b"3|c", b"4|f"]


def test_a_large_message_is_known_again() -> None:
    """Its pieces are one message with one id, alone and in a commit."""
    rig = new_rig(chunk_bytes=100)
    declare(rig, "q", dedup_window_ms=60_000)
    producer = rig.producer()
    large = [b"%d|" % number + bytes(250) for number in range(3)]
    rig.do(run(producer, large[0], large[1], large[0]))
    transaction = Transaction(b"t")
    rig.do(BeginTransaction(transaction))
    rig.do(run(producer, large[1], large[2], large[2], transaction=transaction))
    rig.do(Discharge("key", transaction))
    assert bodies_of(restarted(rig), "q") == large


def test_the_ids_are_in_the_batch_of_their_messages() -> None:
    """So a kill leaves both or neither."""
    rig = new_rig()
    declare(rig, "q", dedup_window_ms=60_000)
    rig.do(run(rig.producer(), b"1|a", b"2|a", b"2|b", b"1|b"))
    assert rig.queue().counters.duplicates == 2
    wanted = [NUMBERS[kind] for kind in (Published, Published, Identified, Duplicated)]
    assert any(wanted == batch[: len(wanted)] for batch in rig.batches())


class _Model:
    """What a queue should do: the ids in the order of their arrival, with their times."""

    def __init__(self, window_us: int, ids_max: int) -> None:
        self.window_us, self.ids_max = window_us, ids_max
        self.ids: OrderedDict[bytes, int] = OrderedDict()
        self.stored: list[bytes] = []

    def take(self, body: bytes, now_us: int) -> None:
        name = body.partition(b"|")[0]
        if name:
            if name in self.ids and now_us - self.ids[name] < self.window_us:
                return
            self.ids.pop(name, None)
            self.ids[name] = now_us
        self.stored.append(body)
        for old in [one for one, at in self.ids.items() if now_us - at >= self.window_us]:
            del self.ids[old]
        while len(self.ids) > self.ids_max:
            self.ids.popitem(last=False)


_IDS = st.sampled_from([b"", b"1", b"2", b"3", b"#1", b"#2"])
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("run"), st.lists(_IDS, min_size=1, max_size=8)),
        st.tuples(st.just("commit"), st.lists(_IDS, min_size=1, max_size=8)),
        st.tuples(st.just("rollback"), st.lists(_IDS, min_size=1, max_size=8)),
        st.tuples(st.just("wait"), st.integers(1, 1200)),
        st.tuples(st.just("restart"), st.none()),
        st.tuples(st.just("purge"), st.none()),
    ),
    max_size=14,
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=_STEPS, ids_max=st.integers(1, 5), is_fan_out=st.booleans())
def test_every_queue_is_as_its_model(steps: list[tuple[str, object]], ids_max: int, is_fan_out: bool) -> None:
    """Within the window never twice, beyond it again, nothing else dropped; the fold is the live state."""
    rig = new_rig(dedup_ids_max=ids_max)
    names = {"a": 1000, "b": 300, "c": 0} if is_fan_out else {"a": 1000}
    models = {name: _Model(1000 * ms, ids_max) for name, ms in names.items() if ms}
    everything: list[bytes] = []
    if is_fan_out:
        _fan_out(rig, **names)
    else:
        declare(rig, "a", dedup_window_ms=1000)
    address, number = "/muxers/all/x" if is_fan_out else "a", 0
    purged: dict[str, int] = dict.fromkeys(names, 0)
    producer = rig.producer(address)
    for kind, value in steps:
        if kind in ("run", "commit", "rollback"):
            bodies = []
            for one in value:  # type: ignore[attr-defined]
                bodies.append(one + b"|%d" % number)
                number += 1
            if kind == "run":
                rig.do(run(producer, *bodies))
            else:
                transaction = Transaction(b"%d" % number)
                rig.do(BeginTransaction(transaction))
                rig.do(run(producer, *bodies, transaction=transaction))
                rig.do(Discharge("key", transaction, fails=kind == "rollback"))
            if kind != "rollback":
                everything += bodies
                for model in models.values():
                    for body in bodies:
                        model.take(body, rig.now_us)
        elif kind == "wait":
            wait(rig, 1000 * value)  # type: ignore[operator]
        elif kind == "purge":
            rig.do(PurgeQueue("key", "a"))
            purged["a"] = len(models["a"].stored)
        else:
            rig = restarted(rig)
            producer = rig.producer(address)
    rig = restarted(rig)
    for name, model in models.items():
        assert bodies_of(rig, name) == model.stored[purged[name] :]
        assert len(rig.queue(name).ids) <= ids_max
    if is_fan_out:
        assert bodies_of(rig, "c") == everything


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(ids=st.lists(_IDS, min_size=1, max_size=30), room=st.integers(1, 8), ids_max=st.integers(1, 4), data=st.data())
def test_a_run_is_as_its_messages_one_by_one(ids: list[bytes], room: int, ids_max: int, data: st.DataObject) -> None:
    """Also where the queue is full, makes room, or forgets."""
    overflow = data.draw(st.sampled_from(["reject", DROP_HEAD, DEAD_LETTER]))
    changes = data.draw(st.sampled_from([1, 3, 2000]))
    bodies = [one + b"|%d" % index for index, one in enumerate(ids)]
    results = []
    for is_run in (True, False):
        rig = new_rig(dedup_ids_max=ids_max, tick_changes_max=changes)
        declare(rig, "dead", messages_max=5)
        declare(rig, "q", dedup_window_ms=1000, messages_max=room, overflow=overflow, dead_letter="dead")
        producer = rig.producer()
        effects: list[object] = []
        if is_run:
            effects += rig.do(run(producer, *bodies))
        else:
            for number, body in enumerate(bodies):
                effects += rig.do(run(producer, body, first_id=number))
        found = outcomes(effects)
        rig = restarted(rig)
        counters = rig.queue().counters
        results.append((found, counters.duplicates, counters.discarded, bodies_of(rig, "q"), bodies_of(rig, "dead")))
    assert results[0] == results[1]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(ids=st.lists(_IDS, min_size=1, max_size=30), messages_max=st.integers(1, 8))
def test_routes_of_their_own_share_what_they_know(ids: list[bytes], messages_max: int) -> None:
    """A run whose messages name their own addresses is as its messages one by one."""
    results = []
    for is_run in (True, False):
        rig = Rig(config=EngineConfig(), fields_of=_Addressed)
        for name in ("a", "b"):
            declare(
                rig, name, dedup_window_ms=1000, messages_max=messages_max, overflow=DEAD_LETTER, dead_letter="dead"
            )
        declare(rig, "dead")
        bodies = [one + b"|%d" % index for index, one in enumerate(ids)]
        producer = rig.producer("")
        for command in [run(producer, *bodies)] if is_run else [run(producer, body) for body in bodies]:
            rig.do(command)
        live = rig.loop.state
        rig.loop.make_due()
        rig.do()
        rig.kill()
        rig = Rig(rig.storage, fields_of=_Addressed)
        assert rig.recovered == live
        results.append([bodies_of(rig, name) for name in ("a", "b", "dead")])
    assert results[0] == results[1]


class _Addressed(_Fields):
    """The same, with an address: b for every third message."""

    def __init__(self, body: Buffer, added: Added = (), /) -> None:
        super().__init__(body, added)
        self._number = int(bytes(body).decode().rpartition("|")[2])

    def get(self, name: str) -> object:
        if name == "properties.to":
            return "/queues/b" if self._number % 3 == 0 else "/queues/a"
        return super().get(name)
