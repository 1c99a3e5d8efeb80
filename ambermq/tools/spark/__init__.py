"""The Data Source `ambermq`, the commands `log query` and `log export`, and a Spark session for one command.

Rule 1. A partition is a segment or a file of an archive; tasks open the files themselves.
Rule 2. A session is closed to the outside, in UTC, and gone with its files when the command ends.
Rule 3. Spark and Java are imported and started by commands that need them alone.

Imports: engine/history, log/manifest, tools/client, tools/dataset, tools/past, tools/terminal.
Imported by: ambermq.spark, tools/compaction, bench.
Names: register, EventSource, open_session.
"""
