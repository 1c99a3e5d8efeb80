"""The index of a sealed segment: one immutable LMDB file in the same directory.

Rule 1. An index is derived from its segment: it is rebuilt if it is missing, and a log is complete without it.
Rule 2. It is built in steps of about a millisecond, because the log may be busy.
Rule 3. No other package imports lmdb. The engine passes the function that computes the keys.

Imports: log, log/format, log/manifest, log/segments, log/storage.
Imported by: log/read, log/write, log/recovery, protocol/server/vhosts.
Names: Index, IndexBuilder, BackgroundBuilder, TouchesOf.
"""
