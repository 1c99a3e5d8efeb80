"""tools/terminal."""
