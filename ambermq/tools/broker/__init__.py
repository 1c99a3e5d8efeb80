"""tools/broker."""
