"""Tests of the HTTP routes of health and metrics."""
