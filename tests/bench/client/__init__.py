"""Tests of bench/client: the load client against wire bytes."""
