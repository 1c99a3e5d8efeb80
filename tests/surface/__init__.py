"""The public surface: what users, scripts and files rely on, as golden files that a test compares with the code."""
