"""Tests of scripts: their language, their clients, and the examples of the pages."""
