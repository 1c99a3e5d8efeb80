"""The command `snapshot`: snapshots taken, listed, checked and deleted, and backups exported and restored.

Rule 1. A running broker takes and deletes its snapshots; without one a command can only delete them.
Rule 2. All other commands read the directory, with or without a broker, and pin the files that they read.

Imports: engine/*, log/*, tools/backup, tools/client, tools/past, tools/terminal, tools/vhosts.
Imported by: the table of commands, by name.
Names: snapshot, export, restore.
"""
