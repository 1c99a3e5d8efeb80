"""log/manifest."""
