"""tools/backup."""
