"""The Data Source `ambermq`, the commands `log query` and `log export`, and a Spark session for one command.

Rule 1. A partition is a segment or a file of an archive; tasks open the files themselves.
Rule 2. A session on this machine listens only on 127.0.0.1. It uses UTC, and deletes its files when the command ends.
Rule 3. Only the commands that need Spark and Java import and start them.

Imports: engine/history, log/manifest, tools/client, tools/dataset, tools/past, tools/terminal.
Imported by: ambermq.spark, tools/compaction, bench.
Names: register, EventSource, open_session.
"""
