"""Commands on single messages of a queue: find them, move them, remove them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

from msgspec import Struct

from ambermq.engine.commands.messages import Publish
from ambermq.engine.commands.signed_command import SignedCommand
from ambermq.engine.entries.discard_reason import MoveReason
from ambermq.engine.entries.marks import Marks
from ambermq.engine.selectors.selector import Selector
from ambermq.log.buffer import Buffer

__all__ = ["EditMessages", "FindMessages", "MessageFilter", "MoveMessages", "RemoveMessages"]


@final
class MessageFilter(Struct, frozen=True):
    """The messages that a request means, by what the broker knows of them. A message must pass every part."""

    selector: Selector | None = None
    reason: str = ""
    """The text of the reason for which they became dead letters; empty for any."""
    source: str = ""
    """The queue that they left; empty for any."""
    since_us: int = 0
    """Dead letters that are not older."""
    scheduled: bool = False
    """The messages that are scheduled for later, and no others; else none of those."""

    @property
    def is_empty(self) -> bool:
        """Return whether every message passes."""
        return self == MessageFilter()


@final
class FindMessages(Struct):
    """Find waiting messages of a queue that pass a filter, a limited number at a time; change nothing.

    The answer is a map: `messages`, a list of maps; `next`, the offset from where to go on; `is_end`; `is_reading`: the
    next messages are read from the disk first, so the client asks again; `end`, the offset behind all messages now.
    """

    key: Any
    name: str
    filter: MessageFilter = MessageFilter()
    after: int = -1
    """Only messages behind this offset."""
    before: int = (1 << 47) - 1
    """Only messages before this offset."""
    count_max: int = 1000
    reads_messages: bool = False
    """Whether the answer has what only the messages themselves tell, as their message-ids."""
    read: Callable[[Mapping[str, Any]], Any] = dict
    """A function from that map to the answer."""


@final
class MoveMessages(SignedCommand):
    """Move waiting messages of a queue: all of one command or, after a kill, none.

    The answer is a map of counts: `moved`; `acquired`, `gone`, `no_room`, `no_origin` of those that stay; and `to`, the
    names of the queues.
    """

    key: Any
    name: str
    offsets: Sequence[int]
    to: str = ""
    """The address of a queue; empty: the queue that each message came from."""
    reason: MoveReason = MoveReason.MOVED
    authorize: Callable[[str], None] | None = None
    """Raises Refused if the request may not send to the queue of this name."""
    dry_run: bytes | None = None
    """Set: change nothing. It is empty, or `taken` of the answer to the dry run of the messages before these.

    The answer has two more values: `targets`, how many messages each queue would get, by name; and `taken`, what this
    dry run would have added to queues so far.
    """


@final
class EditMessages(SignedCommand):
    """Send edited copies of waiting messages to queues, each in the place of its message, all or none.

    One command takes the first messages that fit into half a batch of the log. The answer is a map of counts as that
    of MoveMessages, with `done`, the number of the first `offsets` that it is about. It is 0 with `is_reading`: the
    messages are read from the disk first, so the client asks again.
    """

    key: Any
    name: str
    offsets: Sequence[int]
    to: str
    """The address of a queue; empty: the queue that each message came from."""
    edit: Callable[[Buffer, int, Marks | None], Publish]
    """A function from a message, its offset and its marks to the command that publishes the copy. Raises Refused."""
    authorize: Callable[[str], None] | None = None
    """Raises Refused if the request may not send to the queue of this name."""
    dry_run: bytes | None = None
    """As that of MoveMessages."""


@final
class RemoveMessages(SignedCommand):
    """Remove waiting messages of a queue. The answer is a map of counts: `removed`, `acquired`, `gone`."""

    key: Any
    name: str
    offsets: Sequence[int]
    scheduled: bool = False
    """Whether they are scheduled for later: their delivery is cancelled."""
