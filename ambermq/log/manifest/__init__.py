"""Which files are the log: the manifest, its edits, and the virtual hosts of a data directory.

Rule 1. A segment or a snapshot that the manifest does not name does not exist.
Rule 2. A manifest is replaced, never changed in place. A damaged one is refused.
Rule 3. An edit is a pure function; only the housekeeping thread of a running broker commits one.
Rule 4. A file that a reader's generation names is not deleted.

Imports: log, log/format, log/storage.
Imported by: the packages of log above it, engine, protocol/server, tools.
Names: Manifest, VhostManifest, VhostDirectories, GenerationPins, FileDeletion, place.
"""
