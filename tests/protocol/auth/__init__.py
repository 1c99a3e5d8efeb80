"""Tests of ambermq/protocol/auth: who a peer is, and what it may do."""
