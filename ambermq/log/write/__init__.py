"""The open log of a running broker, and its housekeeping on another thread.

Rule 1. One write appends all batches of a tick, in order.
Rule 2. A record gets its offset when it is drafted; no other record ever gets that offset.
Rule 3. Only the housekeeping thread edits the manifest, prepares spares and deletes files.
Rule 4. A full disk is a state, no failure: publishing is refused, settlements may still be written.

Imports: log, log/compaction, log/format, log/index, log/manifest, log/read, log/storage.
Imported by: log/recovery, engine.
Names: Log, Draft, Housekeeper, BodyHolds, OpenFiles.
"""
