"""tests/protocol/gateway."""
