"""tests/tools/dataset."""
