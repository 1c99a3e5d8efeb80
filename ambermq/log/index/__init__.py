"""log/index."""
