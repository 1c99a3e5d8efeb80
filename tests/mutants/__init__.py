"""Mutation testing of the most critical modules: a small fault in a line must fail a test."""
