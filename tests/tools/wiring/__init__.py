"""tests/tools/wiring."""
