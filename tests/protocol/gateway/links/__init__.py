"""Tests of ambermq/protocol/gateway/links: termini, filters, outcomes and messages."""
