"""Persistent (immutable, structure-sharing) collections."""
