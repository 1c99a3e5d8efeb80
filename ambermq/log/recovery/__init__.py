"""Recovery of a log at a start, and the check, repair and salvage of a damaged one.

Rule 1. No file is changed in place; every step can be interrupted and repeated.
Rule 2. A batch below the durable end that is not valid is damage, and is reported with file and position.
Rule 3. A new epoch's offsets begin above every offset that was ever seen.

Imports: log, log/format, log/index, log/manifest, log/read, log/segments, log/storage, log/write.
Imported by: engine/loop, tools.
Names: Recovery, verify, Repair, Salvage.
"""
