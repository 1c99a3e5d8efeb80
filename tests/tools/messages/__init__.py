"""Tests of ambermq/tools/messages: the commands send, receive and bench, and a message as text."""
