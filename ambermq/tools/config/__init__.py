"""tools/config."""
