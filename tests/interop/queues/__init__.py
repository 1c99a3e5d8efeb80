"""What a queue does, with proton over TCP: times, ends, transactions, and the options of its consumers."""
