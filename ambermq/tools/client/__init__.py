"""tools/client."""
