"""Tests of ambermq/log: the log as a whole, and the simulated disk that its tests share."""
