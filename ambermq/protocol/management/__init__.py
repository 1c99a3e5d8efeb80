"""protocol/management."""
