"""Tests of ambermq/protocol/gateway/producers: runs of messages, credit and uploads."""
