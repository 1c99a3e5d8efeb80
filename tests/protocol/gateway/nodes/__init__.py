"""tests/protocol/gateway/nodes."""
