"""Tests of ambermq/tools/vhosts: virtual hosts with and without a broker."""
