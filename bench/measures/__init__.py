"""bench/measures."""
