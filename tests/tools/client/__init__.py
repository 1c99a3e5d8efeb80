"""Tests of ambermq/tools/client: the client, and the options and URLs of the commands that use it."""
