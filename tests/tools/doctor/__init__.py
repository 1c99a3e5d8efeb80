"""Tests of ambermq/tools/doctor: findings about this machine, and about machines that are told."""
