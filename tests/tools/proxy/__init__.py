"""Tests of the recording proxy: its file, its trace, its relay and its replay."""
