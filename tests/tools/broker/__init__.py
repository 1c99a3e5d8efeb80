"""tests/tools/broker."""
