"""The bytes of a log: record, batch, segment header, and text that ends in its checksum.

Rule 1. Pure: bytes in, values out. docs/log-format.md draws the same bytes, and golden files hold them.
Rule 2. A batch is accepted or refused as a whole; no memory is allocated for a size before it is checked.
Rule 3. A checksum is compared before the bytes are used.

Imports: log.
Imported by: every other package of log, engine, tools.
Names: BatchHeader, Record, Segment, SegmentHeader, Compressor, crc32c.
"""
