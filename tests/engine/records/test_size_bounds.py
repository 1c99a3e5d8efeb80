"""With the smallest batches that the limits allow, whatever one command makes is written and read back."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ambermq.engine.commands import (
    AttachConsumer,
    AttachMember,
    AttachProducer,
    Command,
    DeclareMuxer,
    DeclareQueue,
    DeleteMuxer,
    DeleteQueue,
    DetachConsumer,
    PurgeQueue,
    Settle,
)
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import PublishDone
from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.entries.outcome import ACCEPTED, Outcome, OutcomeKind
from ambermq.engine.events import Lost
from ambermq.engine.events.registry import NUMBERS
from ambermq.engine.loop.durable_loop import DurableLoop
from ambermq.engine.loop.recovery import fold_log
from ambermq.engine.model.attachment import Condition
from ambermq.engine.model.muxer import MuxerKind, Options
from ambermq.engine.model.queue_template import QueueTemplate, QueueTemplates, TemplateAttachment
from ambermq.engine.model.subscription import SubscriptionRequest
from ambermq.engine.records.size_bounds import largest_record
from ambermq.engine.settings.queue_settings import Settings
from ambermq.log.config import LogConfig
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.recovery.verify import verify
from ambermq.log.storage.worker_threads import InlineWorkers
from tests.engine.rig import COLD, Rig
from tests.log.lives import DIRECTORY

_TEXT_BYTES_MAX = 60
_OUTCOME_BYTES_MAX = 600
_LINK = "\x01" * _TEXT_BYTES_MAX
_BOUNDS = {
    "deliveries_max": 1024,
    "link_bytes_max": 2 * _TEXT_BYTES_MAX,
    "request_bytes_max": 500,
    "outcome_bytes_max": _OUTCOME_BYTES_MAX,
}


def _smallest(config: EngineConfig) -> LogConfig:
    """Return the smallest batches that a broker with these limits may have."""
    needed = largest_record(config, **_BOUNDS)
    roomy = replace(COLD, segment_bytes_max=1 << 20, segment_bytes_min=1 << 20)
    return replace(roomy, batch_bytes_max=COLD.batch_bytes_max + needed - COLD.record_bytes_max)


class _Tight(Rig):
    """A broker with hardly room for what it does."""

    def __init__(self, dispatch_messages_max: int = 1024) -> None:
        config = EngineConfig(
            argument_bytes_max=_TEXT_BYTES_MAX,
            name_bytes_max=_TEXT_BYTES_MAX,
            conditions_max=4,
            dispatch_messages_max=dispatch_messages_max,
        )
        self.log_config = _smallest(config)
        self.config = replace(config, chunk_bytes=self.log_config.batch_bytes_max // 2)
        super().__init__(config=self.config, log_config=self.log_config)

    def fill(self, count: int) -> None:
        producer = self.producer()
        for start in range(0, count, 100):
            self.do(self.publish(producer, *[b"m"] * min(100, count - start)))

    def hold(self, count: int) -> tuple[int, bytes]:
        """Return a consumer and the words that it holds."""
        self.fill(count)
        consumer = self.consumer(credit=count)
        self.do()
        return consumer, pack_words(list(self.queue().held_by(consumer)))

    def do_behind(self, *commands: Command) -> None:
        """Run it in a tick whose batch other commands have almost filled."""
        left = COLD.batch_bytes_target - self.loop.log.draft.byte_count - 49
        self.do(self.publish(self.producer(), bytes(left)), *commands)

    def check(self, copied: Path) -> None:
        """Read everything back: what it has folded is what was lived, and nothing is damaged."""
        live = self.loop.state
        # The end of a consumer waits for lazy_write_ms: no peer waits for it.
        self.loop.log.write(self.now_us)
        self.kill()
        again = Rig(self.storage, config=self.config, log_config=self.log_config)
        assert again.recovered == live
        again.kill()
        for path in self.storage._names:
            (copied / path[1:]).parent.mkdir(parents=True, exist_ok=True)
            (copied / path[1:]).write_bytes(bytes(self.storage.content(path)))
        assert verify(f"{copied}{DIRECTORY}", config=self.log_config).damage is None


def _acquired_by_one(rig: _Tight) -> None:
    rig.fill(1024)
    rig.loop.set_credit(rig.consumer(), 1024)
    rig.do()
    assert rig.queue().acquired_count == 1024


def _acquired_by_many(rig: _Tight) -> None:
    rig.fill(1024)
    for consumer in [rig.consumer() for _ in range(1024)]:
        rig.loop.set_credit(consumer, 1)
    rig.do()
    assert rig.queue().acquired_count == 1024


def _published_to_many(rig: _Tight) -> None:
    rig.do(DeclareMuxer("key", "all", MuxerKind.SIMPLE))
    for name in ("a", "b"):
        rig.do(DeclareQueue("key", name, Settings()), AttachMember("key", "all", name))
    producer, run_bytes = rig.producer("/muxers/all/x"), rig.config.chunk_bytes
    # What is beside them is half of a batch, and they are one chunk, the other half: no batch has room for its header.
    count = rig.log_config.batch_bytes_max // 2 // (48 + 16)
    bodies = [bytes(run_bytes // count)] * count
    bodies[0] += bytes(run_bytes % count)
    for sent in (bodies, [bytes(run_bytes)], [bytes(5 * run_bytes + 1)]):
        (done,) = rig.do(rig.publish(producer, *sent))
        assert type(done) is PublishDone
        assert done.kind is OutcomeKind.ACCEPTED
    assert rig.queue("b").available == count + 2


def _acquired_and_settled(rig: _Tight) -> None:
    rig.fill(1024)
    rig.consumer(settled=True, credit=1024)
    rig.do()
    assert not rig.queue().depth


def _settled_in_silence(rig: _Tight) -> None:
    consumer, words = rig.hold(1024)
    rig.do_behind(Settle(consumer, words, ACCEPTED))


def _settled_with_many_words(rig: _Tight) -> None:
    consumer, words = rig.hold(1024)
    rig.do_behind(
        Settle(consumer, words, Outcome(OutcomeKind.REJECTED, description="\x1f" * (_OUTCOME_BYTES_MAX // 6)))
    )


def _lost_with_all_it_holds(rig: _Tight) -> None:
    consumer, words = rig.hold(1024)
    rig.do_behind(DetachConsumer(consumer, words))


def _purged_and_deleted(rig: _Tight) -> None:
    rig.fill(1024)
    rig.do_behind(PurgeQueue("key", "q"), DeleteQueue("key", "q"))


def _wired_with_long_names(rig: _Tight) -> None:
    name = '"' * _TEXT_BYTES_MAX
    conditions = tuple(Condition(f"{number}" + "\x01" * 59, True, "\x02" * 60) for number in range(4))
    rig.do_behind(
        DeclareMuxer("key", name, MuxerKind.WILD_PROPERTY, Options(separator='"' * 8)),
        DeclareQueue("key", name, Settings()),
        AttachMember("key", name, name, conditions),
        AttachProducer("key", f"/muxers/{'%22' * 60}/{_LINK}", _LINK, _LINK),
        AttachConsumer("key", "/topics/" + "%22" * 60, _LINK, _LINK, selector="'" + "\x01" * 50 + "'=a",
                       subscription_request=SubscriptionRequest(_LINK, is_durable=True, is_shared=True)),
    )  # fmt: skip
    assert len(rig.loop.state.subscriptions) == len(rig.loop.state.producers) - 1 == 1
    rig.do_behind(DeleteMuxer("key", name))
    assert name not in rig.loop.state.muxer_names


@pytest.mark.parametrize(
    ("happen", "dispatch_messages_max"),
    [
        (_acquired_by_one, 1024),
        (_acquired_by_many, 1024),
        (_acquired_and_settled, 1024),
        (_published_to_many, 64),
        (_settled_in_silence, 64),
        (_settled_with_many_words, 64),
        (_lost_with_all_it_holds, 64),
        (_purged_and_deleted, 64),
        (_wired_with_long_names, 64),
    ],
)
def test_what_one_command_makes_is_read_back(
    happen: Callable[[_Tight], None], dispatch_messages_max: int, tmp_path: Path
) -> None:
    """It fits after an almost full batch, after a SIGKILL, and in a verification of the log."""
    rig = _Tight(dispatch_messages_max)
    happen(rig)
    rig.check(tmp_path)


def test_a_start_tells_of_any_number_of_lost_ranges() -> None:
    """A repair that gave up more of them than a batch can name."""
    rig = _Tight()
    rig.kill()
    recovery = Recovery.open(rig.storage, DIRECTORY, rig.log_config, rig.now_us)
    state = fold_log(recovery)
    loop = DurableLoop(recovery.log(InlineWorkers()), state, rig.config)
    count = 2 * rig.log_config.batch_bytes_max // 56
    loop.start(rig.now_us, [(number, number + 1) for number in range(count)])
    loop.log.close()
    recovery = Recovery.open(rig.storage, DIRECTORY, rig.log_config, rig.now_us)
    types = [row[9] for batch in recovery.batches() for row in batch.rows()]
    recovery.close()
    assert types.count(NUMBERS[Lost]) == count


def test_what_a_template_says_counts_too() -> None:
    """Its name, and what it attaches by: no request asked for it."""
    plain = largest_record(EngineConfig(), **_BOUNDS)
    attachment = TemplateAttachment("m", (Condition("x" * 2000),))
    for template in (QueueTemplate(Settings("x" * 2000)), QueueTemplate(Settings("t"), attach=(attachment,))):
        config = EngineConfig(templates=QueueTemplates((template,)).with_defaults())
        assert largest_record(config, **_BOUNDS) >= plain
