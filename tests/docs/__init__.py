"""What the documents say, held against what is so."""
