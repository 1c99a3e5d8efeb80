"""tests/tools/history."""
