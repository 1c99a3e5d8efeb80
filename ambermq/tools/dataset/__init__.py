"""tools/dataset."""
