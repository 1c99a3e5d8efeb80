"""Tests of ambermq/tools/spec: the generated tables against the XML."""
