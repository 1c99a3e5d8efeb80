"""Tests of ambermq/tools/client: the client and the commands send, receive and bench."""
