"""Measurements: speed, memory and pauses, always beside a peer in the same run."""
