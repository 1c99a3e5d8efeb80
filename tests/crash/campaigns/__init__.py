"""The campaigns around snapshots, in compactions and with power cuts, and what they need."""
