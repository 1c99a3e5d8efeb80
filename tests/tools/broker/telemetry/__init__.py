"""Tests of the room tools/broker/telemetry."""
