"""protocol/gateway."""
