"""The commands `history`, `log` and `queue browse`: what a log says, for people and for programs.

Rule 1. All but `log repair` and `log compact` only read, and are safe beside a running broker.
Rule 2. What is printed is durable.
Rule 3. The text of an event and its values say the same; the text is made by pure functions.

Imports: engine/*, log/*, protocol/*, tools/client, tools/past, tools/terminal.
Imported by: tools/demo.py, the table of commands by name.
Names: history, log, event_line, story_rows.
"""
