"""Persistent collections that share structure between versions, and the block file of a snapshot.

Rule 1. Every operation returns a new version and leaves the old one unchanged.
Rule 2. A queue holds packed words of eight bytes; no word is an object.
Rule 3. For the block file a payload is only bytes; the checksum is an argument.

Imports: no package of ambermq.
Imported by: engine, protocol/management, tools.
Names: PersistentQueue, PersistentMap, BlockKind, read_blocks.
"""
