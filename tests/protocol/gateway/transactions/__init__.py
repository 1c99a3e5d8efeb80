"""Tests of ambermq/protocol/gateway/transactions: declares, discharges and what is done in a transaction."""
