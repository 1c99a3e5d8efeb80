"""The broker as a deterministic state machine: commands in, events logged, effects out.

Rule 1. A command is decided once: it becomes events and effects, or a refusal. `decide` may refuse.
Rule 2. An event is a fact: applying it never refuses. The state is the fold of the log, equal on every replay.
Rule 3. Only effects wait, never decisions: an effect leaves when the records that it depends on are durable.
Rule 4. A run of n messages has the same result as n runs of one. Time, offsets and limits are arguments.

Imports: engine/entries, engine/model, engine/patterns, engine/selectors, log.
Imported by: protocol, tools.
Names: Effect, EngineConfig, Refused, parse_address.
"""
