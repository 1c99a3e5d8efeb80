"""An append-only log of opaque records: batches in segments, a manifest, indexes and recovery.

Rule 1. The log knows bytes, batches and offsets. The types of records belong to the engine.
Rule 2. One thread, the event loop, writes and never waits. A failed write or sync is fatal and never retried.
Rule 3. `durable_end` is the log end at the start of the last sync that returned.
Rule 4. Everything has a limit, and config.py has its name.

Imports: log/format.
Imported by: engine, protocol/server, tools, bench.
Names: LogConfig, LogError, LogFailed, DamageError, Buffer.
"""
