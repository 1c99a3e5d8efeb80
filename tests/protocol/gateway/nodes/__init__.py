"""Tests of ambermq/protocol/gateway/nodes: requests and answers."""
