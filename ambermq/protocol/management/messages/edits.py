"""The edits of a REDRIVE: its attribute `edit`, a map.

set        a map of fields to their new values (amqp10/message/edit.py says which)
unset      a list of fields that the copies have not
id_prefix  the beginning of the message-ids of the copies, before the offsets of the messages
keep_id    true: the copies keep the message-ids; then there is no id_prefix
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from ambermq.engine.commands import EditMessages, Publish
from ambermq.engine.entries.marks import Marks
from ambermq.engine.errors import Refused
from ambermq.log.buffer import Buffer
from ambermq.protocol.amqp10.errors import DecodeError, LocalError
from ambermq.protocol.amqp10.message.edit import MessageEdit, edited
from ambermq.protocol.amqp10.message.publish_outline import read_outline
from ambermq.protocol.management.request_fields import flag_field, refuse_unknown

__all__ = ["edit_messages"]


def edit_messages(request: Any, name: str, offsets: list[int], to: str, values: object) -> EditMessages:
    """Return the command of a REDRIVE of queue `name` with the attribute `edit`. Raises Refused."""
    if not isinstance(values, dict):
        raise Refused("amqp:invalid-field", f"'edit' must be a map, found {values!r:.80}")
    edit = _edit(values)
    try:
        edit.check()
    except ValueError as error:
        raise Refused("amqp:invalid-field", f"edit: {error}") from error
    return EditMessages(request, name, offsets, to, partial(_copy, edit), request.authorize_sending)


def _edit(values: Mapping[str, Any]) -> MessageEdit:
    refuse_unknown(values, "edit", "set", "unset", "id_prefix", "keep_id")
    found, removed, prefix = values.get("set", {}), values.get("unset", []), values.get("id_prefix", "")
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise Refused("amqp:invalid-field", f"edit: 'set' must be a map of fields to values, found {found!r:.80}")
    if not isinstance(removed, list) or not all(isinstance(name, str) for name in removed):
        raise Refused("amqp:invalid-field", f"edit: 'unset' must be a list of fields, found {removed!r:.80}")
    if not isinstance(prefix, str) or bool(prefix) is flag_field(values, "keep_id"):
        raise Refused("amqp:invalid-field", "edit: expected the text 'id_prefix', or 'keep_id' = true")
    return MessageEdit({str(name): value for name, value in found.items()}, tuple(map(str, removed)), str(prefix))


def _copy(edit: MessageEdit, message: Buffer, offset: int, marks: Marks | None) -> Publish:
    """Return the command that publishes the edited copy of a message. Raises Refused if it cannot be edited."""
    redrives = 0 if marks is None else marks.redriven().redrives
    try:
        body = edited(message, edit, offset=offset, redrives=redrives)
        outline = read_outline(body)
    except (DecodeError, LocalError) as error:
        raise Refused("amqp:decode-error", f"the message at offset {offset} cannot be edited: {error}") from error
    copy = Publish(None, 0, 0, [body], [outline.id_hash], len(body), outline.is_durable, settled=True)
    copy.priority, copy.groups = outline.priority, [outline.group] if outline.group else []
    return copy
