"""protocol/gateway/links."""
