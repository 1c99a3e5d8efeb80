"""Tests of the measuring client: a bench that misreads its peer measures nothing."""
