"""The index of a sealed segment: one immutable LMDB file beside it.

Rule 1. An index is derived from its segment: it is rebuilt where it is missing, and a log is whole without it.
Rule 2. It is built about a millisecond at a time, beside a log that may be busy.
Rule 3. No other room imports lmdb. What a key means is a function that the engine gives.

Imports: log, log/format, log/manifest, log/segments, log/storage.
Imported by: log/read, log/write, log/recovery.
Names: Index, IndexBuilder, BackgroundBuilder, TouchesOf.
"""
