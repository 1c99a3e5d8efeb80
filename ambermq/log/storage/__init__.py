"""log/storage."""
