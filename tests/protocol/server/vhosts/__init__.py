"""Tests of ambermq/protocol/server/vhosts: virtual hosts beside each other."""
