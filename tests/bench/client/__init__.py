"""tests/bench/client."""
