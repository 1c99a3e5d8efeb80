"""log/read."""
