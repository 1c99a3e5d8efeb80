"""What is done instead of an UPDATE, by type, where what there is of it never changes.

Rule: an UPDATE that there is not is refused with a sentence that says why, and what to do.
"""

from collections.abc import Mapping
from typing import Final

from ambermq.protocol.management.attachments import ATTACHMENT_TYPE
from ambermq.protocol.management.compactions import COMPACTION_TYPE
from ambermq.protocol.management.snapshots import SNAPSHOT_TYPE
from ambermq.protocol.management.subscriptions import SUBSCRIPTION_TYPE
from ambermq.protocol.management.templates import TEMPLATE_TYPE
from ambermq.protocol.management.vhosts import VHOST_TYPE

__all__ = ["REPLACEMENTS"]

REPLACEMENTS: Final[Mapping[str, str]] = {
    ATTACHMENT_TYPE: "an attachment is what it says: make the other one, then delete this one",
    SUBSCRIPTION_TYPE: "a subscription is what its receiver asks for: attach it again asking for something else; "
    "its queue is updated by the address /queues/NAME",
    TEMPLATE_TYPE: "templates are those of the broker's configuration: change them there and start it again",
    SNAPSHOT_TYPE: "a snapshot is of one moment: make another one",
    COMPACTION_TYPE: "a compaction's job does not change: commit it, or begin another one",
    VHOST_TYPE: "a virtual host has the mode that it was made with: make another one and wire it alike",
}
"""Type to a sentence without its end."""
