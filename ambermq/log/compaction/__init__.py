"""The work of a compaction on segments: count, copy and rewrite tasks, and the adoption of their result.

Rule 1. A task is a value that another process can run. The same task writes the same bytes, however often it runs.
Rule 2. A kept record does not change: offset, time, columns, meta and body stay.
Rule 3. One edit of the manifest commits a result; until then the log is unchanged.

Imports: log, log/format, log/manifest, log/segments, log/storage.
Imported by: log/write, engine/compaction, tools.
Names: Adoption, CompactionJob, RecordSelection, adopt.
"""
