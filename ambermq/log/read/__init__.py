"""Reading a log: bodies for the running loop, and batches and records for readers in other processes.

Rule 1. The loop never waits for the disk: memory first, then the page cache, then a thread.
Rule 2. A body whose checksum fails is DAMAGED, never bytes.
Rule 3. A reader in another process writes nothing, takes only a shared lock, and stops at the durable end.

Imports: log, log/format, log/index, log/manifest, log/segments, log/storage.
Imported by: log/write, log/recovery, engine, tools.
Names: BodyStore, LogReader, BatchLookup, TailReader, Search.
"""
