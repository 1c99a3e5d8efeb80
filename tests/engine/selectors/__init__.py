"""tests/engine/selectors."""
