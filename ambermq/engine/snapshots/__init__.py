"""Snapshots of a state: taken beside the running loop, written, loaded, and deleted by age and number.

Rule 1. A snapshot is a reference to one immutable state; a lane of its own writes it slowly.
Rule 2. What goes wrong costs the snapshot and is reported; it never costs the broker.
Rule 3. A file is compared with what the manifest says of it; a damaged one is never used.

Imports: engine, engine/model, log, log/format, log/manifest, log/storage, log/write, snapshot.
Imported by: engine/compaction, engine/history, engine/loop, tools.
Names: Snapshotter, write_snapshot, load_snapshot, prunable.
"""
