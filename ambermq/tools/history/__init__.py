"""The commands `history`, `log` and `queue browse`: the content of a log, for people and for programs.

Rule 1. All but `log repair` and `log compact` only read, and are safe while a broker runs.
Rule 2. A command prints only durable events.
Rule 3. The text of an event says the same as its values; pure functions compute the text.

Imports: ambermq, engine/*, log/*, protocol/*, tools/client, tools/messages, tools/past, tools/terminal.
Imported by: tools/demo.py, the table of commands by name.
Names: history, log, event_line, story_rows.
"""
