"""The room of queues for a run of messages: which of them are stored, and what the others are answered.

Imports: engine, engine/commands, engine/decide, engine/decide/messages, engine/entries, engine/events,
    engine/model, engine/model/queue_parts, engine/settings, log, log/format.
Imported by: engine/decide/messages.
Names: count_max, is_checked_later, outcome, rejected, take_unfinished, to_queues, unroutable.
"""
