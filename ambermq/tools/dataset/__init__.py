"""History as columns: the events of segments and archives as Arrow batches, from files on disk or a remote store.

Rule 1. A task gets only data: it finds a segment by place and file id.
Rule 2. A task reads and decodes only the rows and columns of the query.
Rule 3. An archive counts when the manifest names it.
Rule 4. A remote store can be read, and exports can be written there; a broker needs a disk.

Imports: engine/*, log/*, protocol/amqp10/*, tools/messages, tools/past, tools/terminal.
Imported by: ambermq.spark, tools/compaction, tools/spark, bench.
Names: open_histories, event_columns, schema_of, write_archive.
"""
