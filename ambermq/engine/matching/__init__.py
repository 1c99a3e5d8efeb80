"""engine/matching."""
