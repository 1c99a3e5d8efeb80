"""tests/tools/spec."""
