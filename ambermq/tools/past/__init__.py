"""tools/past."""
