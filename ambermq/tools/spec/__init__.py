"""tools/spec."""
