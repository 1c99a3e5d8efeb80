"""Tests of the mechanisms of SASL."""
