"""tests/bench/measures."""
