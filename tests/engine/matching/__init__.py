"""Tests of ambermq/engine/matching: indexes against a walk of all attachments."""
