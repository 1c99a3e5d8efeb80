"""The backup: one file or directory with a snapshot and the live messages, and a log made from it.

Rule 1. A backup holds all live messages, or the export fails.
Rule 2. It is written under a temporary name until it is whole and synced.
Rule 3. Nothing of a backup is used before its checksum was right.
Rule 4. A restored log has an id of its own; its horizon is the end of the snapshot.

Imports: engine/*, log/*, snapshot, tools/past, tools/terminal.
Imported by: tools/snapshots, tools/vhosts.
Names: export_backup, restore_backup, verify_backup, BackupReader, BackupWriter.
"""
