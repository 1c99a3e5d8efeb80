"""Tests of ambermq/tools/queues: the update of one queue or many."""
