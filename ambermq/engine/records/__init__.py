"""Events as log records, and records as events: the engine's bytes.

Rule 1. A record type never changes its meaning, and its number is never used twice.
Rule 2. Reading what was written gives the same event. Golden files hold the bytes.
Rule 3. A field that has its default is not written, so a later field leaves old records as they are.

Imports: engine, engine/events, engine/fold, engine/model, log, log/format, log/write.
Imported by: engine/loop, engine/history, protocol/gateway, tools.
Names: write_event, events_of, facts_of, touches_of.
"""
