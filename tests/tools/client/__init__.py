"""tests/tools/client."""
