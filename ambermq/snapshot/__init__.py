"""Persistent collections that share structure between versions, and the block file of a snapshot.

Rule 1. Every operation returns another version and leaves the old one as it was.
Rule 2. A queue holds packed words of eight bytes; no word is an object.
Rule 3. The block file knows its payload as bytes alone; the checksum is an argument.

Imports: nothing of ours.
Imported by: engine, protocol/management, tools.
Names: PersistentQueue, PersistentMap, BlockKind, read_blocks.
"""
