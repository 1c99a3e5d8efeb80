"""A moment of a log for commands: WHEN parsed, the past opened with low priority, ids shown by name.

Rule 1. The past is read from the log's files, so a command needs the directory.
Rule 2. A command lowers its own priority before it reads and before it imports what it needs.
Rule 3. An unknown id is shown as the id.

Imports: engine/*, log/*, protocol/management, tools/client, tools/terminal.
Imported by: the packages of tools above it.
Names: parse_when, opened_past, state_of, lower_priority, RateLimit, IdNames.
"""
