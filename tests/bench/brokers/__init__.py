"""Tests of bench/brokers."""
