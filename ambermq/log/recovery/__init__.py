"""log/recovery."""
