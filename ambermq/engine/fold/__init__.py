"""engine/fold."""
