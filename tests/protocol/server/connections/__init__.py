"""Tests of ambermq/protocol/server/connections: accepted connections and their limits."""
