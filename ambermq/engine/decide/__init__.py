"""Command and state in, events and effects out: all validation and routing.

Rule 1. A decision reads command, state and DecisionContext alone, and changes nothing.
Rule 2. A command is checked completely before its first event; a refusal leaves the state as it was.
Rule 3. A repeated declaration or attachment changes nothing.
Rule 4. A command with more changes than a tick allows is decided in parts, each a command of its own.

Imports: engine, engine/commands, engine/decide/messages, engine/entries, engine/events, engine/fold, engine/model,
    engine/model/queue_parts, engine/patterns, engine/routing, engine/selectors, engine/settings,
    engine/transactions, log, log/format, snapshot.
Imported by: engine/loop, engine/history, protocol/management, tools/wiring.
Names: decide, Decision, DecisionContext.
"""
