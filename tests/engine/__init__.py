"""Tests of ambermq/engine: the state machine as a whole, and the rigs that its tests share."""
