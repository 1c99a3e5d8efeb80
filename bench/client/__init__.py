"""bench/client."""
