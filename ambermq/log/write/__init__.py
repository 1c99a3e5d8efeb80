"""The open log of a running broker, and what it needs done beside the loop.

Rule 1. Every batch of a tick goes in by one write, in order, behind what was there.
Rule 2. An offset is given when a record is drafted, and never to another record.
Rule 3. Only the housekeeping thread edits the manifest, prepares spares and deletes files.
Rule 4. A full disk is a state: publishing has no room, settlements may still write.

Imports: log, log/compaction, log/format, log/index, log/manifest, log/read, log/storage.
Imported by: log/recovery, engine.
Names: Log, Draft, Housekeeper, BodyHolds, OpenFiles.
"""
