"""History as columns: the events of segments and archives as Arrow batches, wherever the files lie.

Rule 1. What tasks get is data: a segment is found again by place and file id.
Rule 2. Only what a selection and its columns ask for is read and decoded.
Rule 3. An archive counts when the manifest names it.
Rule 4. Remote places are read, and exports are written there; a broker needs a disk.

Imports: engine/*, log/*, protocol/amqp10/*, tools/client, tools/past, tools/terminal.
Imported by: ambermq.spark, tools/compaction, tools/spark, bench.
Names: open_histories, event_columns, schema_of, write_archive.
"""
