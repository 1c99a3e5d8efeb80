"""tests/protocol/management."""
