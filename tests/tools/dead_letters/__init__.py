"""Tests of ambermq/tools/dead_letters: the commands on single messages of queues."""
