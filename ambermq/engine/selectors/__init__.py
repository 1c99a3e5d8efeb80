"""engine/selectors."""
