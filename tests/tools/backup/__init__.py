"""tests/tools/backup."""
