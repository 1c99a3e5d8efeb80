"""log/write."""
