"""protocol/gateway/sources."""
