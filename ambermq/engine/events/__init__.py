"""Events: the facts of the log, as objects per run, each described in one place.

Rule 1. An event is a fact: applying it never fails, and needs only the state before it.
Rule 2. A run of n similar records is one object with columns; n = 1 is no special case.
Rule 3. `offset` is that of the run's first record: it is the identity of what the record creates.
Rule 4. A family's module holds everything about its events: class, number, name, record layout, codec, index keys,
        facts, line. It is pure. It imports the model and `log`'s draft, never records, fold or tools.

Imports: engine, engine/entries, engine/events/messages, engine/model, engine/settings, log.
Imported by: the packages of engine above it, protocol/gateway, tools.
Names: Event, EventType, Acquired, Settled, QueueDeclared.

How to add an event:

1. Choose its family here. Write the class, with `offset` and `time_us` first, and add it to the family's union.
2. Add an `EventType` to the family's `TYPES`: the next free number, a name, the layout. The codec is derived if
   columns hold all fields; else write `meta` and `read` next to the class. Name the facts and the line.
3. Add its class to `APPLY` in fold/apply.py, with the function that returns the state after it.
4. Return it from a decision in decide/.
5. Add a sample of it to tests/engine/events/samples.py, with its line and its bytes, and a test of the decision.
6. Run `python -m tests.docs.event_tables` and `python -m tests.surface --write`: they write it into docs/ and into the
   list of the public surface. Describe it in CHANGELOG.md. The next golden data directory holds a record of it.
"""

from ambermq.engine.events import delays, deliveries, lifecycle, links, moves, muxers, queues
from ambermq.engine.events.delays import *  # noqa: F403 - the families' own lists say what is public
from ambermq.engine.events.deliveries import *  # noqa: F403
from ambermq.engine.events.lifecycle import *  # noqa: F403
from ambermq.engine.events.links import *  # noqa: F403
from ambermq.engine.events.messages import commits, marks, message_ids, published, uploads
from ambermq.engine.events.messages.commits import *  # noqa: F403
from ambermq.engine.events.messages.marks import *  # noqa: F403
from ambermq.engine.events.messages.message_ids import *  # noqa: F403
from ambermq.engine.events.messages.published import *  # noqa: F403
from ambermq.engine.events.messages.uploads import *  # noqa: F403
from ambermq.engine.events.moves import *  # noqa: F403
from ambermq.engine.events.muxers import *  # noqa: F403
from ambermq.engine.events.queues import *  # noqa: F403
from ambermq.engine.events.registry import Event

__all__ = ["Event"]
__all__ += delays.__all__
__all__ += deliveries.__all__
__all__ += lifecycle.__all__
__all__ += links.__all__
__all__ += commits.__all__
__all__ += marks.__all__
__all__ += message_ids.__all__
__all__ += published.__all__
__all__ += uploads.__all__
__all__ += moves.__all__
__all__ += muxers.__all__
__all__ += queues.__all__
