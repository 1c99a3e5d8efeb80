"""Events of each type that together say all that an event of the type can say, each with its line in a history.

What belongs to a type is tested by these: its codec, facts, line, tables of the docs, and list of the public surface.
The golden bytes of the first 24 types lie in tests/golden/events.hex; a later type has its own here.
"""

from typing import Final, NamedTuple

from msgspec.structs import replace

from ambermq.engine.entries.discard_reason import DiscardReason, MoveReason
from ambermq.engine.entries.entry_word import make_words, pack_words
from ambermq.engine.entries.outcome import ACCEPTED, Outcome, OutcomeKind
from ambermq.engine.events import (
    Acquired,
    Attached,
    Chunked,
    ClockStepped,
    Committed,
    Compacted,
    ConsumerAttached,
    ConsumerDetached,
    Damaged,
    Detached,
    Discarded,
    Drawn,
    Due,
    Duplicated,
    Event,
    Grouped,
    Identified,
    Keyed,
    LinkEnded,
    LinkResumed,
    LinkSuspended,
    Lost,
    Moved,
    MuxerDeclared,
    MuxerDeleted,
    MuxerUpdated,
    Prioritized,
    ProducerAttached,
    ProducerDetached,
    Published,
    Purged,
    QueueConfigured,
    QueueDeclared,
    QueueDeleted,
    QueueUpdated,
    Reset,
    Scheduled,
    SetAside,
    Settled,
    Started,
    Subscribed,
    TagsKept,
    Timed,
    UploadEnded,
)
from ambermq.engine.model.attachment import Condition
from ambermq.engine.model.lifetime import Lifetime
from ambermq.engine.model.muxer import MuxerKind, Options
from ambermq.engine.model.publish_options import PublishOptions, Unroutable
from ambermq.engine.model.subscription import Subscription
from ambermq.engine.model.suspended_link import Keeping
from ambermq.engine.model.vhost_mode import VhostMode
from ambermq.engine.settings.queue_settings import DROP_HEAD, Settings

__all__ = ["MUXER", "QUEUE", "SAMPLES", "TIME_US", "WIRING", "WITH_USER", "WORDS", "Sample"]


class Sample(NamedTuple):
    """One event."""

    event: Event
    words: str
    """Its line, where WIRING happened before."""
    golden: str = ""
    """Its record and meta at offset 2^20 in hex, where tests/golden/events.hex has none of its type."""


TIME_US: Final = 1_700_000_000_000_001
MUXER: Final = 1
QUEUE: Final = 2
"""The one queue whose name is known."""
WORDS: Final = make_words(10, [100, 100, 100])
GAPS: Final = pack_words([offset << 16 | 1 for offset in range(20, 36, 2)])
ONE: Final = make_words(9, [1])
MODIFIED: Final = Outcome(OutcomeKind.MODIFIED, True, True, ((b"k", b"v"),))
NOT_FAILED: Final = Outcome(OutcomeKind.MODIFIED)
REJECTED: Final = Outcome(OutcomeKind.REJECTED, condition="amqp:decode-error", description="no JSON")
SENDING: Final = PublishOptions(Unroutable.REJECT, True, True)
LOSSY: Final = Options(separator="/", probability=0.5, seed=7, lifetime=Lifetime.ON_CLOSE)

WIRING: Final[tuple[Event, ...]] = (
    MuxerDeclared(1, TIME_US, "QUEUE", MuxerKind.DESTINATION),
    QueueDeclared(2, TIME_US, "orders", Settings(messages_max=1000)),
    ProducerAttached(3, TIME_US, 1, "orders", "shop", "out"),
    ConsumerAttached(4, TIME_US, 2, "store", "in"),
)

_PLAIN: Final = (
    Sample(Started(0, TIME_US, 3), "the broker started, epoch 3"),
    Sample(Started(0, TIME_US, 3, kept=(4, 98)), "the broker started, epoch 3"),
    Sample(Started(0, TIME_US, 1, VhostMode.ADVANCED), "the broker started, epoch 1, in advanced mode"),
    Sample(WIRING[1], "queue 'orders' declared, at most 1,000 messages"),
    Sample(
        QueueDeclared(2, TIME_US, "orders", Settings(), Lifetime.ON_CLOSE),
        "queue 'orders' declared, until its link closes",
    ),
    Sample(QueueUpdated(5, TIME_US, 2, Settings(messages_max=2000)), "queue 'orders' updated, at most 2,000 messages"),
    Sample(
        QueueUpdated(5, TIME_US, 2, Settings()),
        "queue 'orders' updated, no maximum length of its own",
    ),
    Sample(QueueDeleted(20, TIME_US, 2), "queue 'orders' deleted"),
    Sample(
        Subscribed(23, TIME_US, 2, Subscription("news.#", "mine", "c", False, False, "a = 1", True, owner="alice")),
        "'orders' subscribes c/mine to topic 'news.#' where a = 1 (durable), without its own messages",
    ),
    Sample(
        Subscribed(23, TIME_US, 2, Subscription("news", "ours", None, True, True)),
        "'orders' subscribes ours to topic 'news' (volatile, shared)",
    ),
    Sample(WIRING[0], "muxer 'QUEUE' of class DESTINATION declared"),
    Sample(
        MuxerDeclared(24, TIME_US, "net", MuxerKind.LOSSY, Options(probability=0.5, seed=7)),
        "muxer 'net' of class LOSSY declared, probability 0.5, seed 7",
    ),
    Sample(
        MuxerDeclared(24, TIME_US, "none", MuxerKind.LOSSY, Options(probability=0.0)),
        "muxer 'none' of class LOSSY declared, probability 0.0, seed 0",
    ),
    Sample(
        MuxerDeclared(24, TIME_US, "all", MuxerKind.LOSSY, LOSSY),
        "muxer 'all' of class LOSSY declared, separator '/', probability 0.5, seed 7, until its link closes",
    ),
    Sample(
        MuxerDeclared(24, TIME_US, "paths", MuxerKind.WILD_PROPERTY, Options(separator="/")),
        "muxer 'paths' of class WILD_PROPERTY declared, separator '/'",
    ),
    Sample(
        MuxerUpdated(5, TIME_US, 1, Options(probability=0.25, seed=-7)),
        "muxer 'QUEUE' updated, probability 0.25, seed -7",
    ),
    Sample(MuxerDeleted(5, TIME_US, 1), "muxer 'QUEUE' deleted"),
    Sample(Attached(5, TIME_US, 1, 2, "orders"), "queue 'orders' attached to 'QUEUE' for 'orders'"),
    Sample(
        Attached(5, TIME_US, 1, 2, (Condition("a", True, 1), Condition("{b}"))),
        "queue 'orders' attached to 'QUEUE' for 'a=1 and {b}'",
    ),
    Sample(Detached(5, TIME_US, 1, 2, 5, "orders"), "queue 'orders' detached from 'QUEUE' for 'orders'"),
    Sample(Drawn(5, TIME_US, 1, 3), "muxer 'QUEUE' made the lossy draws of 3 messages"),
    Sample(WIRING[2], "shop/out sends to 'orders'"),
    Sample(ProducerAttached(3, TIME_US, MUXER, "orders", "c", "l", keeping=Keeping(2, 5000)), "c/l sends to 'orders'"),
    Sample(
        ProducerAttached(3, TIME_US, 1, "orders", "container", "link", SENDING, 2, 2),
        "container/link sends to 'orders'",
    ),
    Sample(ProducerDetached(18, TIME_US, 3), "producer shop/out detached"),
    Sample(WIRING[3], "store/in receives from 'orders'"),
    Sample(ConsumerAttached(4, TIME_US, 2, "c", "l", keeping=Keeping(2, 5000)), "c/l receives from 'orders'"),
    Sample(ConsumerAttached(4, TIME_US, 2, "c", "l", is_exclusive=True), "c/l receives from 'orders'"),
    Sample(ConsumerAttached(4, TIME_US, 2, "c", "l", "a = 1", 2), "c/l receives from 'orders' where a = 1"),
    Sample(ConsumerDetached(19, TIME_US, 4), "consumer store/in detached"),
    Sample(
        LinkSuspended(20, TIME_US, 4),
        "link store/in suspended",
        golden="000000000000000008000000000000000000000000000000040000000000000000000000000000000000000000002b00"
        "0000000000000000",
    ),
    Sample(
        LinkSuspended(20, TIME_US, 4, 5_000_000),
        "link store/in suspended, until 5000000 us of elapsed time",
        golden="000000000000000008000000000000000000000000000000040000000000000000000000000000000000000000002b00"
        "404b4c0000000000",
    ),
    Sample(
        LinkResumed(21, TIME_US, 4, 98),
        "link store/in resumed by link 98",
        golden="000000000000000008000000000000000000000000000000040000000000000000000000000000000000000000002c00"
        "6200000000000000",
    ),
    Sample(
        LinkEnded(22, TIME_US, 4),
        "suspended link store/in ended",
        golden="000000000000000000000000000000000000000000000000040000000000000000000000000000000000000000002d00",
    ),
    Sample(
        TagsKept(23, TIME_US, 3, (b"a", b"bc"), (b"",)),
        "delivery-tags of shop/out: 2 kept, 1 settled",
        golden="000000000000000006000000000000000000000000000000030000000000000000000000000000000200000000002e00"
        "016102626300",
    ),
    Sample(Chunked(6, TIME_US, 3, b""), "a chunk of a large message from shop/out"),
    Sample(
        UploadEnded(16, TIME_US, 6),
        "a large message ended before it was published, stored in chunks from offset 6 on",
        golden="000000000000000000000000000000000000000000000000060000000000000000000000000000000000000000002f00",
    ),
    Sample(Published(10, TIME_US, (2,), 3, WORDS, 300), "3 messages to 'orders', 300 B, durable, from shop/out"),
    Sample(
        Published(10, TIME_US, (2, 99), 98, make_words(10, [1]), 3 << 20, False, (6, 7)),
        "1 message to 'orders', 'queue 99', 3.0 MiB, not durable, in 3 pieces, from link 98",
    ),
    Sample(Acquired(13, TIME_US, 2, (4,), WORDS), "3 messages of 'orders' to store/in: 10 to 12"),
    Sample(Acquired(13, TIME_US, 2, (4, 98), WORDS), "3 messages of 'orders' to store/in, link 98: 10 to 12"),
    Sample(Settled(14, TIME_US, 2, 4, ACCEPTED, WORDS), "3 messages of 'orders' accepted by store/in: 10 to 12"),
    Sample(
        Settled(14, TIME_US, 2, 4, ACCEPTED, GAPS),
        "8 messages of 'orders' accepted by store/in: 20, 22, 24, 26, 28, 30 and 2 more",
    ),
    Sample(
        Settled(14, TIME_US, 2, 4, MODIFIED, ONE),
        "1 message of 'orders' modified (delivery failed, undeliverable here, 1 annotations) by store/in: 9",
    ),
    Sample(
        Settled(14, TIME_US, 2, 4, NOT_FAILED, ONE),
        "1 message of 'orders' modified (delivery not failed) by store/in: 9",
    ),
    Sample(
        Settled(14, TIME_US, 2, 4, REJECTED, ONE),
        "1 message of 'orders' rejected (amqp:decode-error, no JSON) by store/in: 9",
    ),
    Sample(
        Purged(15, TIME_US, 2, 12, 1),
        "queue 'orders' purged: its available messages below offset 12 are deleted",
        golden="0000000000000000000000000000000002000000000000000c0000000000000000000000000000000100000000000f00",
    ),
    Sample(Purged(15, TIME_US, 2, 12), "queue 'orders' purged: its available messages below offset 12 are deleted"),
    Sample(Damaged(16, TIME_US, 2, make_words(11, [5])), "1 message of 'orders' cannot be read and is set aside: 11"),
    Sample(
        Damaged(16, TIME_US, 2, make_words(11, [5, 6])),
        "2 messages of 'orders' cannot be read and are set aside: 11 to 12",
    ),
    Sample(Lost(17, TIME_US, 5, 9), "records 5 to 8 are lost"),
    Sample(Reset(21, TIME_US), "the virtual host was reset: all queues, messages and links are gone"),
    Sample(
        Compacted(22, TIME_US, 20, 3, 1, 5000, 12, 90_000, 4_200),
        "compacted: history begins at offset 20, bytes 90,000 -> 4,200, records 5,000 -> 12",
    ),
    Sample(
        Compacted(22, TIME_US, 20, 3, 0, 0, 0, 90_000, 0),
        "compacted: history begins at offset 20, bytes 90,000 -> 0",
    ),
    Sample(
        ClockStepped(23, TIME_US, TIME_US + 90_500_000),
        "the clock stepped by -90.500 s",
        golden="000000000000000008000000000000000000000000000000000000000000000000000000000000000000000000001900"
        "a12b831d240a0600",
    ),
    Sample(
        QueueConfigured(5, TIME_US, 2, Settings(messages_max=9, bytes_max=2048, overflow=DROP_HEAD)),
        "queue 'orders' configured: messages_max 9, bytes_max 2048, overflow drop-head of template 'normal'",
        golden="00000000000000005b000000000000000200000000000000000000000000000000000000000000000000000000001a00"
        "7b2273657474696e6773223a7b2274656d706c617465223a226e6f726d616c222c226d657373616765735f6d6178223a"
        "392c2262797465735f6d6178223a323034382c226f766572666c6f77223a2264726f702d68656164227d7d",
    ),
    Sample(
        Discarded(16, TIME_US, 2, DiscardReason.EDITED, make_words(11, [5]), "", 15),
        "1 message of 'orders' discarded (edited): 11, edited copy 15",
        golden="0000000000000000080000000000000002000000000000000f0000000000000000000000000000000100000018001b00"
        "05000b0000000000",
    ),
    Sample(
        Discarded(16, TIME_US, 2, DiscardReason.LENGTH, make_words(11, [5, 6])),
        "2 messages of 'orders' discarded (length): 11 to 12",
        golden="000000000000000010000000000000000200000000000000000000000000000000000000000000000200000001001b00"
        "05000b000000000006000c0000000000",
    ),
    Sample(
        Timed(16, TIME_US, (2,), 11, 2, 60_000),
        "2 messages of 'orders' with a time to live of 60,000 ms: 11 to 12",
        golden="0000000000000000080000000000000002000000000000000b0000000000000000000000000000000200000000001e00"
        "60ea000000000000",
    ),
    Sample(
        Timed(16, TIME_US, (2, 3), 11, 1, 1),
        "1 message of 'orders', 'queue 3' with a time to live of 1 ms: 11",
        golden="0000000000000000180000000000000000000000000000000b0000000000000000000000000000000100000000001e04"
        "010000000000000002000000000000000300000000000000",
    ),
    Sample(
        Timed(16, TIME_US, (2, 3), 11, 2, 1, pack_words([60_000, 1])),
        "2 messages of 'orders', 'queue 3' with a time to live of 1 to 60,000 ms: 11 to 12",
        golden="0000000000000000280000000000000000000000000000000b0000000000000000000000000000000200000001001e04"
        "010000000000000060ea00000000000001000000000000000200000000000000"
        "0300000000000000",
    ),
    Sample(
        Identified(16, TIME_US, (2,), 100_000, WORDS, bytes(range(48))),
        "the ids of 3 messages remembered on 'orders': 10 to 12",
        golden="000000000000000048000000000000000200000000000000a08601000000000000000000000000000300000000002700"
        "64000a000000000064000b000000000064000c0000000000000102030405060708090a0b0c0d0e0f1011121314151617"
        "18191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f",
    ),
    Sample(
        Identified(16, TIME_US, (2, 3), 1, WORDS[:8], bytes(16)),
        "the ids of 1 message remembered on 'orders', 'queue 3': 10",
        golden="000000000000000028000000000000000000000000000000010000000000000000000000000000000100000000002704"
        "64000a00000000000000000000000000000000000000000002000000000000000300000000000000",
    ),
    Sample(
        Duplicated(16, TIME_US, (2,), 7, WORDS),
        "3 messages from link 7 not stored on 'orders', duplicates of 10 to 12",
        golden="000000000000000018000000000000000200000000000000070000000000000000000000000000000300000000002800"
        "64000a000000000064000b000000000064000c0000000000",
    ),
    Sample(
        Duplicated(16, TIME_US, (2, 3), 7, WORDS[:8]),
        "1 message from link 7 not stored on 'orders', 'queue 3', duplicates of 10",
        golden="000000000000000018000000000000000000000000000000070000000000000000000000000000000100000000002804"
        "64000a000000000002000000000000000300000000000000",
    ),
    Sample(
        Prioritized(16, TIME_US, (2,), 11, 2, 9),
        "2 messages of 'orders' with priority 9: 11 to 12",
        golden="0000000000000000000000000000000002000000000000000b0000000000000000000000000000000200000009002200",
    ),
    Sample(
        Prioritized(16, TIME_US, (2, 3), 11, 1, 0),
        "1 message of 'orders', 'queue 3' with priority 0: 11",
        golden="0000000000000000100000000000000000000000000000000b0000000000000000000000000000000100000000002204"
        "02000000000000000300000000000000",
    ),
    Sample(
        Keyed(16, TIME_US, (2,), 11, bytes(range(16)) + bytes(16)),
        "2 messages of 'orders' with keys: 11 to 12",
        golden="0000000000000000200000000000000002000000000000000b0000000000000000000000000000000200000000002500"
        "000102030405060708090a0b0c0d0e0f00000000000000000000000000000000",
    ),
    Sample(
        Keyed(16, TIME_US, (2, 3), 11, bytes(range(16))),
        "1 message of 'orders', 'queue 3' with keys: 11",
        golden="0000000000000000200000000000000000000000000000000b0000000000000000000000000000000100000000002504"
        "000102030405060708090a0b0c0d0e0f02000000000000000300000000000000",
    ),
    Sample(
        Grouped(16, TIME_US, (2,), 11, 3, pack_words([6, 0, 7])),
        "3 messages of 'orders' with groups, 1 in all: 11 to 13",
        golden="0000000000000000180000000000000002000000000000000b0000000000000000000000000000000300000003002300"
        "060000000000000000000000000000000700000000000000",
    ),
    Sample(
        Grouped(16, TIME_US, (2, 3), 11, 2, pack_words([1 << 48])),
        "2 messages of 'orders', 'queue 3' with groups, 1 in all: 11 to 12",
        golden="0000000000000000180000000000000000000000000000000b0000000000000000000000000000000200000001002304"
        "000000000000010002000000000000000300000000000000",
    ),
    Sample(
        Committed(16, TIME_US, 11, 3, 2),
        "a transaction was committed from offset 11 on: 3 messages, 2 settled deliveries",
        golden="0000000000000000100000000000000000000000000000000b0000000000000000000000000000000000000000002100"
        "03000000000000000200000000000000",
    ),
    Sample(
        Scheduled(16, TIME_US, (2,), TIME_US + 60_000_000, make_words(11, [5, 6])),
        "2 messages of 'orders' scheduled, available in 60,000 ms: 11 to 12",
        golden="00000000000000001000000000000000020000000000000001c7b11b240a060000000000000000000200000000001f00"
        "05000b000000000006000c0000000000",
    ),
    Sample(
        Scheduled(
            16,
            TIME_US,
            (2, 3),
            TIME_US + 1_000,
            make_words(11, [5, 6]),
            pack_words([TIME_US + 60_000_000, TIME_US + 1_000]),
        ),
        "2 messages of 'orders', 'queue 3' scheduled, the first available in 1 ms: 11 to 12",
        golden="000000000000000030000000000000000000000000000000e9431e18240a060000000000000000000200000001001f04"
        "05000b000000000006000c000000000001c7b11b240a0600e9431e18240a060002000000000000000300000000000000",
    ),
    Sample(
        Scheduled(16, TIME_US, (2, 3), TIME_US + 1_000, make_words(11, [5])),
        "1 message of 'orders', 'queue 3' scheduled, available in 1 ms: 11",
        golden="000000000000000018000000000000000000000000000000e9431e18240a060000000000000000000100000000001f04"
        "05000b000000000002000000000000000300000000000000",
    ),
    Sample(
        Due(16, TIME_US, 2, make_words(11, [5, 6])),
        "2 messages of 'orders' available after a redelivery delay: 11 to 12",
        golden="000000000000000010000000000000000200000000000000000000000000000000000000000000000200000000002000"
        "05000b000000000006000c0000000000",
    ),
    Sample(
        SetAside(16, TIME_US, 2, MoveReason.REJECTED, make_words(11, [5, 6])),
        "2 messages of 'orders' set aside (rejected): 11 to 12",
        golden="000000000000000010000000000000000200000000000000000000000000000000000000000000000200000004001c00"
        "05000b000000000006000c0000000000",
    ),
    Sample(
        Moved(16, TIME_US, 2, (3,), MoveReason.DELIVERY_COUNT, make_words(11, [5])),
        "1 message of 'orders' moved to 'queue 3' (delivery-count): 11",
        golden="000000000000000008000000000000000300000000000000020000000000000000000000000000000100000002001d00"
        "05000b0000000000",
    ),
    Sample(
        Moved(16, TIME_US, 3, (2, 4), MoveReason.COPIED, make_words(11, [5])),
        "1 message of 'queue 3' copied to 'orders', 'queue 4' (copied): 11",
        golden="000000000000000019000000000000000200000000000000030000000000000000000000000000000100000012001d00"
        "05000b00000000007b2274617267657473223a5b322c345d7d",
    ),
)


def _with_user(sample: Sample) -> Sample:
    """Return a sample whose event names a user."""
    event = sample.event
    if isinstance(event, ProducerAttached | ConsumerAttached):
        return Sample(replace(event, user="alice"), f"{sample.words}, user 'alice'")
    return Sample(replace(event, by="alice"), f"{sample.words}, by user 'alice'")


WITH_USER: Final = tuple(
    _with_user(sample)
    for sample in {type(one.event): one for one in _PLAIN}.values()
    if {"by", "user"}.intersection(sample.event.__struct_fields__)
)
"""An event of each type that can name a user; tests/golden/events_with_users.hex has their bytes."""
SAMPLES: Final = (*_PLAIN, *WITH_USER)
