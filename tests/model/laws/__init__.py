"""The laws that every mix keeps, and the ledger of what has become of each message."""
