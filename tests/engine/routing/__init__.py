"""Tests of ambermq/engine/routing: routes against a walk of the wiring."""
