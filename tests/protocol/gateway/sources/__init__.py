"""tests/protocol/gateway/sources."""
