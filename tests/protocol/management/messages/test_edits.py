"""The copies of an edit: commands of messages, as those of links are."""

from types import SimpleNamespace

from ambermq.protocol.amqp10.message.group_code import group_code
from ambermq.protocol.amqp10.message.message import Data, Message
from ambermq.protocol.amqp10.performatives.classes import Header, Properties
from ambermq.protocol.management.messages.edits import edit_messages


def test_a_copy_has_the_group_and_the_priority_of_its_fields() -> None:
    """Those of the message, or those of the edit."""
    message = Message(header=Header(priority=7), properties=Properties(group_id="a"), body=(Data(b"x"),)).encode()
    for values, group, priority in (({}, "a", 7), ({"properties.group-id": "b", "header.priority": 2}, "b", 2)):
        edit = edit_messages(
            SimpleNamespace(authorize_sending=None), "q", [1], "", {"set": values, "keep_id": True}
        ).edit
        copy = edit(message, 1, None)
        assert (copy.groups, copy.priority) == ([group_code(group, is_last=False)], priority)
