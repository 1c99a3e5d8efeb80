"""The opening of connections at the gateway."""
