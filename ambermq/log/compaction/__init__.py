"""The work of a compaction on segments: count, copy and rewrite tasks, and the adoption of their result.

Rule 1. A task is a value that another process can run. The same task writes the same bytes, however often it runs.
Rule 2. A record that is kept stays what it was: offset, time, columns, meta and body.
Rule 3. A result counts when one edit of the manifest has named it; until then the log is unchanged.

Imports: log, log/format, log/manifest, log/segments, log/storage.
Imported by: log/write, engine/compaction, tools.
Names: Adoption, CompactionJob, RecordSelection, adopt.
"""
