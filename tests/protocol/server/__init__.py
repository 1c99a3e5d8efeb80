"""Tests of ambermq/protocol/server: the server over sockets."""
