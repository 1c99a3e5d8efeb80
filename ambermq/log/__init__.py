"""An append-only log of opaque records: batches, segments, manifest, indexes and recovery."""
