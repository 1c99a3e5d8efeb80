"""tools/history."""
