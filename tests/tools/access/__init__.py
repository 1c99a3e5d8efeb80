"""Tests of the commands of users and rules."""
