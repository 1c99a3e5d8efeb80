"""The command `snapshot`: snapshots taken, listed, checked and deleted, and backups exported and restored.

Rule 1. A running broker takes and deletes its snapshots; a stopped one's directory only loses them.
Rule 2. Everything else reads the directory, with or without a broker, and pins what it reads.

Imports: engine/*, log/*, tools/backup, tools/client, tools/past, tools/terminal, tools/vhosts.
Imported by: the table of commands, by name.
Names: snapshot, export, restore.
"""
