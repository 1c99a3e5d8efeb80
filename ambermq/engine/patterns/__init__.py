"""engine/patterns."""
