"""Command and state in, events and effects out: all validation and routing.

Rule 1. A decision reads command, state and DecisionContext alone, and changes nothing.
Rule 2. A request is checked whole before anything happens; a refusal leaves the state as it was.
Rule 3. Asking again for what there is changes nothing.
Rule 4. What is more than a tick takes is decided in parts, each a command of its own.

Imports: engine, engine/events, engine/fold, engine/model, engine/patterns, engine/routing, engine/selectors, log,
    log/format, snapshot.
Imported by: engine/loop, engine/history, protocol/management, tools/wiring.
Names: decide, Decision, DecisionContext.
"""
