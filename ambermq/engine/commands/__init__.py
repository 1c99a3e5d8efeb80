"""The commands of the engine, in modules by what they concern.

Rule 1. A command is decided once: it gives events and effects, or a refusal.
Rule 2. `key` and `link` are opaque to the engine. The effects that answer the command carry them.
Rule 3. A command is imported from this package, without the name of its module.

Imports: engine, engine/entries, engine/model, engine/selectors, engine/settings, log.
Imported by: the packages of engine above it, protocol, tools.
Names: Command, SignedCommand, Publish, Settle, AttachConsumer, DeclareQueue.
"""

from ambermq.engine.commands import (
    compaction,
    deferred,
    lifecycle,
    links,
    messages,
    moves,
    muxers,
    questions,
    queues,
    snapshots,
    transactions,
    uploads,
)
from ambermq.engine.commands.command import Command
from ambermq.engine.commands.compaction import *  # noqa: F403 - the modules' own lists say what is public
from ambermq.engine.commands.deferred import *  # noqa: F403
from ambermq.engine.commands.lifecycle import *  # noqa: F403
from ambermq.engine.commands.links import *  # noqa: F403
from ambermq.engine.commands.messages import *  # noqa: F403
from ambermq.engine.commands.moves import *  # noqa: F403
from ambermq.engine.commands.muxers import *  # noqa: F403
from ambermq.engine.commands.questions import *  # noqa: F403
from ambermq.engine.commands.queues import *  # noqa: F403
from ambermq.engine.commands.signed_command import SignedCommand
from ambermq.engine.commands.snapshots import *  # noqa: F403
from ambermq.engine.commands.transactions import *  # noqa: F403
from ambermq.engine.commands.uploads import *  # noqa: F403

__all__ = ["Command", "SignedCommand"]
__all__ += compaction.__all__
__all__ += deferred.__all__
__all__ += lifecycle.__all__
__all__ += links.__all__
__all__ += messages.__all__
__all__ += moves.__all__
__all__ += muxers.__all__
__all__ += questions.__all__
__all__ += queues.__all__
__all__ += snapshots.__all__
__all__ += transactions.__all__
__all__ += uploads.__all__
