"""Events of messages that arrive, and of what is said about them in the same batch.

Rule 1. A run of messages is one Published; what most messages do not have (a time to live, a priority, a group, a key,
        a scheduled time) is an event of its own after it.
Rule 2. An event on several queues is one record (`fan_out`).

Imports: engine/entries, engine/events, log.
Imported by: engine/events, engine/records, tools/dataset.
Names: Published, Chunked, Timed, Prioritized, Grouped, Keyed, Identified, Duplicated, Committed.
"""
