"""Tests of ambermq/tools/broker/http: a real broker that answers over HTTP."""
