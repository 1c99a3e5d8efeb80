"""engine/decide."""
