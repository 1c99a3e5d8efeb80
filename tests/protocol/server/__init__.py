"""tests/protocol/server."""
