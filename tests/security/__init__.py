"""Faults that other brokers had, by name: each is sent to a running broker."""
