"""Reading a log: bodies for the running loop, and batches and records for readers from outside.

Rule 1. The loop never waits for the disk: memory first, then the page cache, then a thread.
Rule 2. A body whose checksum fails is DAMAGED, never bytes.
Rule 3. A reader from outside writes nothing, takes a shared lock alone, and stops where the log was durable.

Imports: log, log/format, log/index, log/manifest, log/segments, log/storage.
Imported by: log/write, log/recovery, engine, tools.
Names: BodyStore, LogReader, BatchLookup, TailReader, Search.
"""
