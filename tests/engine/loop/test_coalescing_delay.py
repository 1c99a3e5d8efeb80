"""A message that comes alone waits for another where one is to be expected, and hardly ever in vain."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ambermq.engine.commands import Inspect
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import PublishDone
from ambermq.engine.loop.coalescing_delay import FOREVER_US, Company
from ambermq.engine.loop.durable_loop import ALONE, LATER, SOON
from ambermq.engine.records.types import TYPE_NAMES
from tests.engine.rig import Rig, delivered

PUBLISHED = {name: number for number, name in TYPE_NAMES.items()}["published"]


def come(rig: Rig, producer: int, body: bytes, *, durable: bool = True) -> bool:
    """Let a message come, and obey what is due as a server does; returns whether it waits."""
    rig.loop.submit(rig.publish(producer, body, durable=durable))
    if rig.loop.due == ALONE and rig.loop.may_wait(rig.now_us):
        assert rig.loop.due == LATER
        assert rig.loop.deadline_us <= rig.now_us + rig.loop.config.gather_us
        return True
    rig.loop.step(rig.now_us)
    return False


def test_messages_a_millisecond_apart_share_a_write_by_twos() -> None:
    """But for the first, behind which nobody was to be expected."""
    rig = Rig()
    producer = rig.producer()
    waited = []
    for number in range(9):
        waited.append(come(rig, producer, b"%d" % number))
        rig.completed()
        rig.now_us += 1000
    assert waited == [False] + [True, False] * 4
    assert not rig.loop.is_waiting
    assert [batch.count(PUBLISHED) for batch in rig.batches() if PUBLISHED in batch] == [1, 2, 2, 2, 2]


def test_nobody_waits_longer_than_gather_us() -> None:
    """What waited in vain is decided at the deadline, by itself."""
    rig = Rig()
    consumer, producer = rig.consumer(credit=5), rig.producer()
    come(rig, producer, b"one")
    rig.completed()
    rig.now_us += 1000
    assert come(rig, producer, b"two")
    assert rig.completed() == []
    assert rig.loop.deadline_us == rig.now_us + rig.loop.config.gather_us
    rig.now_us = rig.loop.deadline_us
    rig.step()
    done, *deliveries = rig.completed()
    assert type(done) is PublishDone
    assert delivered(deliveries) == [(consumer, b"two")]


def test_who_waits_for_each_answer_is_hardly_held_up() -> None:
    """Of 5,000 messages, each sent when the last one was answered, a dozen wait."""
    rig = Rig()
    producer = rig.producer()
    waits = 0
    for _ in range(5000):
        if come(rig, producer, b"sent"):
            waits += 1
            rig.now_us = rig.loop.deadline_us
            rig.step()
        rig.completed()
        rig.now_us += 200
    assert 0 < waits <= 13


def test_who_waits_for_each_answer_is_hardly_held_up_by_others_who_send() -> None:
    """Another link's message ends its wait each time, and that is no reason to wait again."""
    rig = Rig()
    one, other = rig.producer(), rig.producer()
    waits = 0
    for _ in range(2000):
        if come(rig, one, b"mine"):
            waits += 1
            rig.now_us += 1000
            rig.step(replace(rig.publish(other, b"theirs"), link="other"))
        rig.completed()
        rig.now_us += 200
    assert 0 < waits <= 12


def test_only_durable_messages_wait_for_others() -> None:
    """The others wait for no disk, so they win nothing."""
    rig = Rig()
    producer = rig.producer()
    for _ in range(3):
        assert not come(rig, producer, b"volatile", durable=False)
        rig.now_us += 100


def test_without_gather_us_nobody_waits() -> None:
    """Each is decided when it comes."""
    rig = Rig(config=EngineConfig(gather_us=0))
    producer = rig.producer()
    assert not any(come(rig, producer, b"alone") for _ in range(3))


def test_what_cannot_wait_takes_it_along() -> None:
    """A tick for anything else decides the message that waits."""
    rig = Rig()
    producer = rig.producer()
    come(rig, producer, b"one")
    rig.completed()
    rig.now_us += 1000
    assert come(rig, producer, b"two")
    rig.loop.submit(Inspect("key", lambda state: state))
    assert rig.loop.due >= SOON
    assert not rig.loop.may_wait(rig.now_us)
    rig.step()
    assert rig.queue().ready.count == 2
    rig.completed()
    rig.now_us += 1000
    assert come(rig, producer, b"three"), "that was no wait in vain"


def test_company_that_comes_once_in_three_times_is_not_worth_waiting_for() -> None:
    """Of 10,000 messages fewer than a hundred wait: one wait that was not in vain does not make up for two."""
    company = Company(1000)
    now_us, waits = 0, 0
    for _ in range(10_000):
        now_us += 100
        if company.may_wait(now_us, "link"):
            waits += 1
            comes = waits % 3 == 0
            if comes:
                company.meet("link")
            now_us = now_us if comes else company.by_us
            company.decided(now_us, 2 if comes else 1)
        else:
            company.decided(now_us, 1)
    assert 3 < waits < 100


@given(
    st.integers(1, 5000),
    st.lists(st.tuples(st.integers(0, 3000), st.sampled_from(("", "link", "other"))), max_size=200),
)
def test_few_waits_are_in_vain(gather_us: int, steps: list[tuple[int, str]]) -> None:
    """Each that was not allows one that is, and besides them no more are than times that one can double up to 4,096."""
    company = Company(gather_us)
    now_us, in_vain, met = 0, 0, 0
    for pause_us, comes in steps:
        now_us += pause_us
        if not company.may_wait(now_us, "link"):
            assert (company.count, company.by_us) == (0, FOREVER_US)
            company.decided(now_us, 1)
            continue
        assert company.by_us == now_us + gather_us
        if comes:
            company.meet(comes)
        now_us = now_us if comes else company.by_us
        company.decided(now_us, 2 if comes else 1)
        met, in_vain = met + (comes == "link"), in_vain + (comes != "link")
        assert in_vain <= met + 13
