"""Tests of bench/measures: what a scenario measures."""
