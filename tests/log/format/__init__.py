"""Tests of ambermq/log/format: golden bytes, round trips and checksums."""
