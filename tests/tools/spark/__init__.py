"""tests/tools/spark."""
