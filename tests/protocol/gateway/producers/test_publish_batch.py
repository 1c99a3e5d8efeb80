"""The decoded messages of a run that become one command."""

from ambermq.protocol.amqp10.message.delivery_time import DeliveryTime
from ambermq.protocol.gateway.producers.message_kind import PLAIN_KIND, PublishedMessage
from ambermq.protocol.gateway.producers.publish_batch import PublishBatch

_PLAIN = PublishedMessage(b"body", PLAIN_KIND, 7, 0)


def at(time_ms: int) -> PublishedMessage:
    """Return a message that is scheduled for a time."""
    return _PLAIN._replace(kind=PLAIN_KIND._replace(delivery=DeliveryTime(time_ms, 0)))


def living(ttl_ms: int) -> PublishedMessage:
    """Return a message with a time to live."""
    return _PLAIN._replace(kind=PLAIN_KIND._replace(ttl_ms=ttl_ms))


def test_a_batch_takes_one_kind_up_to_its_bytes() -> None:
    """Its first message may have any size and kind."""
    batch = PublishBatch(5)
    assert batch.takes(_PLAIN, 100, 10)
    batch.add(_PLAIN)
    assert batch.takes(_PLAIN, 6, 10)
    assert not batch.takes(_PLAIN, 7, 10)
    assert not batch.takes(_PLAIN._replace(kind=PLAIN_KIND._replace(is_durable=True)), 1, 10)


def test_times_may_differ_but_not_from_none() -> None:
    """Each message keeps its time if they differ."""
    batch = PublishBatch(5)
    batch.add(at(1))
    assert batch.takes(at(2), 1, 10)
    assert not batch.takes(_PLAIN, 1, 10)
    batch.add(at(1))
    assert batch.command(None, 1, settled=False).times_ms is None
    batch.add(at(2))
    publish = batch.command(None, 1, settled=True)
    assert (publish.times_ms, publish.first_id, publish.size, publish.settled) == ([1, 1, 2], 5, 12, True)


def test_expiries_may_differ_but_not_from_none() -> None:
    """Each message keeps its own if they differ; times to live and times of the clock are not mixed."""
    batch = PublishBatch(5)
    batch.add(living(3))
    batch.add(living(3))
    assert batch.command(None, 1, settled=False).lives_ms is None
    assert batch.takes(living(2), 1, 100)
    assert not batch.takes(_PLAIN, 1, 100)
    assert not batch.takes(_PLAIN._replace(kind=PLAIN_KIND._replace(expires_ms=2)), 1, 100)
    batch.add(living(2))
    assert batch.command(None, 1, settled=False).lives_ms == [3, 3, 2]


def test_groups_are_told_only_if_there_are_some() -> None:
    """One message with a group is enough."""
    batch = PublishBatch(5)
    batch.add(_PLAIN)
    assert batch.command(None, 1, settled=False).groups == []
    batch.add(_PLAIN._replace(group=9))
    assert batch.command(None, 1, settled=False).groups == [0, 9]
