"""Tests of bench/stalls: the longest steps of the event loop."""
