"""tests/tools/past."""
