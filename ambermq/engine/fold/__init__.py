"""Event and state in, state out: the only way in which a state changes.

Rule 1. `apply` is total: it never refuses an event, so an old log always replays.
Rule 2. The fold of a log equals the live state, at every offset.
Rule 3. A message that goes to very many queues is in all of them or in none.

Imports: engine, engine/entries, engine/events, engine/model, engine/model/queue_parts, snapshot.
Imported by: engine/decide, engine/dispatch, engine/records, engine/loop, engine/history, tools.
Names: apply, fold, WideFanout, damage_of.
"""
