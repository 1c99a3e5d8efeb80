"""protocol/server."""
