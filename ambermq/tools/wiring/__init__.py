"""tools/wiring."""
