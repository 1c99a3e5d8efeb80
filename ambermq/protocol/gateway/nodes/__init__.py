"""protocol/gateway/nodes."""
