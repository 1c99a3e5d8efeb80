"""Tests of the commands that watch a running broker."""
