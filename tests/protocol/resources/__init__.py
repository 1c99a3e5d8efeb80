"""Tests of protocol/resources."""
