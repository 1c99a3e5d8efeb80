"""The decisions on messages: publish them, and what happens where a queue has no room.

Imports: engine, engine/commands, engine/decide, engine/decide/messages/room, engine/entries, engine/events,
    engine/fold, engine/matching, engine/model, engine/model/queue_parts, engine/selectors, engine/settings,
    engine/transactions, log, log/format, snapshot.
Imported by: engine/decide, engine/loop.
Names: publish.
"""
