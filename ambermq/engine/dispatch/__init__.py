"""Dispatch of available messages to consumers with credit, in turn.

Rule 1. Demand is volatile and empty at a start; each choice is logged as an Acquired event.
Rule 2. Returned messages are dispatched before the others, each kind in the order of entries.
Rule 3. Consumers of a queue take strict turns. A consumer that excludes an entry does not block the later entries.
Rule 4. The delivery of a large message that arrives may begin before it is on its queue (cut_through.py).
Rule 5. Bodies are read through the log in the arguments: no module here opens a file.

Imports: engine, engine/commands, engine/entries, engine/events, engine/fold, engine/model, engine/routing,
    engine/selectors, engine/settings, log, log/format, log/read, log/write, snapshot.
Imported by: engine/loop.
Names: dispatch, begin_cut_through, Demand, Want, SelectorScan, MessagePeek.
"""
