"""The commands of the configuration, and a reload of a real broker."""
