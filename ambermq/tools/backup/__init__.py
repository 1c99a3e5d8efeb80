"""The backup: one file or directory with a snapshot and the live messages, and a log made from it.

Rule 1. A backup holds all live messages, or the export fails.
Rule 2. It has a temporary name until it is complete and synced.
Rule 3. A part of a backup is used only after its checksum was verified.
Rule 4. A restored log has an id of its own; its horizon is the end of the snapshot.

Imports: engine/*, log/*, snapshot, tools/past, tools/terminal.
Imported by: tools/snapshots, tools/vhosts.
Names: export_backup, restore_backup, verify_backup, BackupReader, BackupWriter.
"""
