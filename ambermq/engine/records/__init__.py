"""engine/records."""
