"""Tests of the management types about who may use the broker."""
