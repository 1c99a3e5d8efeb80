"""The broker as a deterministic state machine: commands in, events logged, effects out."""
