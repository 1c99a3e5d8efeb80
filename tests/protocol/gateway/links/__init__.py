"""tests/protocol/gateway/links."""
