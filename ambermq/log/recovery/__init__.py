"""Opening a log again after whatever ended it, and checking, repairing and salvaging a damaged one.

Rule 1. Nothing is changed in place; every step can be cut short and done again.
Rule 2. A batch below the durable end that is not valid is damage, and is reported with file and position.
Rule 3. A new epoch's offsets begin above every offset that was ever seen.

Imports: log, log/format, log/index, log/manifest, log/read, log/segments, log/storage, log/write.
Imported by: engine/loop, tools.
Names: Recovery, verify, Repair, Salvage.
"""
