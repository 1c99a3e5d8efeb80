"""The command `queue update`: change the settings of one queue, or of all whose names match a pattern.

Rule 1. Each queue is one request. A refused one is reported by its name, and the others go on.
Rule 2. A queue that has the settings already gets no request, so a second run does only what is left.

Imports: engine, engine/patterns, engine/settings, tools/client, tools/terminal, tools/wiring.
Imported by: tools.
Names: update, QueueChange, planned.
"""
