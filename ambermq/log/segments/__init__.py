"""log/segments."""
