"""Tests of ambermq/log/manifest: edits, pinned generations, file deletion and virtual hosts on the disk."""
