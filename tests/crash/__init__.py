"""Brokers killed under load, and every promise checked afterwards."""
