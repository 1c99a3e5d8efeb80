"""Real clients against a real broker: what each can do, cell by cell, as docs/interop.md shows it."""
