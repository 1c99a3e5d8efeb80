"""tests/tools/terminal."""
