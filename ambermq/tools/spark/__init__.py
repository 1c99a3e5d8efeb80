"""tools/spark."""
