"""What identifiers in selectors stand for."""

from typing import Any
from uuid import UUID

import pytest

from ambermq.engine.selectors.selector import parse_selector
from tests.engine.routing.selector_trees import DictFields

_UUID = UUID(int=5)


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("JMSPriority = 7", "header.priority", 7),
        ("JMSDeliveryMode = 'PERSISTENT'", "header.durable", True),
        ("JMSDeliveryMode = 'NON_PERSISTENT'", "header.durable", False),
        ("JMSRedelivered = TRUE", "header.delivery-count", 1),
        ("JMSRedelivered", "header.delivery-count", 1),
        ("NOT JMSRedelivered", "header.delivery-count", 0),
        ("JMSXDeliveryCount = 3", "header.delivery-count", 2),
        ("JMSMessageID = 'ID:abc'", "properties.message-id", "ID:abc"),
        (f"JMSMessageID = 'ID:AMQP_UUID:{_UUID}'", "properties.message-id", _UUID),
        ("JMSMessageID = 'ID:AMQP_ULONG:12'", "properties.message-id", 12),
        ("JMSMessageID = 'ID:AMQP_BINARY:0AFF'", "properties.message-id", b"\x0a\xff"),
        ("JMSCorrelationID LIKE 'job-%'", "properties.correlation-id", "job-1"),
        ("JMSTimestamp > 1000", "properties.creation-time", 1001),
        ("JMSExpiration > 1000", "properties.absolute-expiry-time", 1001),
        ("JMSType = 'order'", "properties.subject", "order"),
        ("JMSDestination = 'q'", "properties.to", "q"),
        ("JMSReplyTo = 'q'", "properties.reply-to", "q"),
        ("JMSXGroupID = 'g'", "properties.group-id", "g"),
        ("JMSXGroupSeq = 2", "properties.group-sequence", 2),
        ("JMSXUserID = 'eve'", "properties.user-id", b"eve"),
        ("JMSXUserID IS NOT NULL", "properties.user-id", b"\xff"),
        ("amqp.message_id = 'a'", "properties.message-id", "a"),
        ("amqp.message_id = 12", "properties.message-id", 12),
        (f"amqp.message_id = '{_UUID}'", "properties.message-id", _UUID),
        ("amqp.correlation_id = 'a'", "properties.correlation-id", "a"),
        ("amqp.subject = 'a'", "properties.subject", "a"),
        ("amqp.to = 'a'", "properties.to", "a"),
        ("amqp.reply_to = 'a'", "properties.reply-to", "a"),
        ("amqp.user_id = 'a'", "properties.user-id", b"a"),
        ("amqp.content_type = 'a'", "properties.content-type", "a"),
        ("amqp.creation_time = 5", "properties.creation-time", 5),
        ("amqp.group_id = 'a'", "properties.group-id", "a"),
        ("amqp.priority = 9", "header.priority", 9),
        ("amqp.durable", "header.durable", True),
        ("amqp.ttl = 9", "header.ttl", 9),
        ("amqp.first_acquirer", "header.first-acquirer", True),
        ("amqp.delivery_count = 0", "header.delivery-count", 0),
        ("amqp.delivery_mode = 'PERSISTENT'", "header.durable", True),
        ("properties.message_id = 'a'", "properties.message-id", "a"),
        ("header.priority = 9", "header.priority", 9),
        ("annotations.key = 9", "annotations.key", 9),
        ('"annotations.x-key" = 9', "annotations.x-key", 9),
        ('"properties.message-id" = 12', "properties.message-id", 12),
        ("JMSX_other.thing = 9", "JMSX_other.thing", 9),
        ("amqp = 9", "amqp", 9),
    ],
)
def test_identifiers(text: str, name: str, value: Any) -> None:
    """Headers of JMS and names of AMQP's filter registry are fields of the message, all else is its own property."""
    selector = parse_selector(text)
    assert selector.names == {name}
    assert selector.matches(DictFields({name: value}))


@pytest.mark.parametrize("name", ["JMSMessageID", "JMSType", "JMSTimestamp", "amqp.message_id", "amqp.user_id", "x"])
def test_missing_fields_are_null(name: str) -> None:
    """A field that a message does not have is NULL."""
    assert parse_selector(f"{name} IS NULL").matches(DictFields())
