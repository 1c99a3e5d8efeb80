"""Tests of ambermq/protocol/telemetry: trace contexts, and the spans of messages."""
