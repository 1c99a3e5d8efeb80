"""What a compaction keeps of a log, and its commit in the running broker.

Rule 1. A message is live if a queue holds it, available or acquired. Other records below the new horizon are garbage.
Rule 2. At least two snapshots stay from which a start can begin; both are read again before a file is deleted.
Rule 3. A failed compaction changes nothing, and is reported to the client that requested it.

Imports: engine, engine/commands, engine/entries, engine/model, engine/snapshots, log, log/compaction, log/format,
    log/manifest, log/storage, log/write.
Imported by: engine/loop, tools.
Names: Compactor, Plan, kept_offsets, HistoricalSnapshot.
"""
