"""What a compaction keeps of a log, and its commit beside the running broker.

Rule 1. Live is what a queue holds, available or acquired. All else below the new horizon is history.
Rule 2. Two snapshots stay that a start can begin with; both are read again before anything is deleted.
Rule 3. A failed compaction changes nothing, and is reported to the client that asked.

Imports: engine, engine/model, engine/snapshots, log, log/compaction, log/format, log/manifest, log/storage,
    log/write.
Imported by: engine/loop, tools.
Names: Compactor, Plan, kept_offsets, HistoricalSnapshot.
"""
