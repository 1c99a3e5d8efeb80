"""Tests of ambermq/protocol/gateway/consumers: deliveries, backlogs, locks and outcomes."""
