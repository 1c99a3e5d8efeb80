"""Snapshots of a state: taken while the loop runs, written, loaded, and deleted by age and number.

Rule 1. A snapshot is a reference to one immutable state; a thread of its own writes it at a limited rate.
Rule 2. A failure ends only the snapshot and is reported; the broker continues.
Rule 3. A file is compared with its entry in the manifest; a damaged file is never used.

Imports: engine, engine/commands, engine/entries, engine/model, engine/model/queue_parts, engine/settings,
    log, log/format, log/manifest, log/storage, log/write, snapshot.
Imported by: engine/compaction, engine/history, engine/loop, tools.
Names: Snapshotter, write_snapshot, load_snapshot, prunable.
"""
