"""log/format."""
