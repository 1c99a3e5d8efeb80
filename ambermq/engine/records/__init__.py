"""Events as log records, and records as events: the engine's bytes.

Rule 1. A record type never changes its meaning, and its number is never used twice.
Rule 2. A record that is written and read again gives the same event. Golden files hold the bytes.
Rule 3. A field with its default value is not written, so a new field does not change the bytes of old records.

Imports: engine, engine/entries, engine/events, engine/events/messages, engine/fold, engine/model, log, log/format,
    log/write.
Imported by: engine/loop, engine/history, protocol/gateway, tools.
Names: write_event, events_of, facts_of, touches_of.
"""
