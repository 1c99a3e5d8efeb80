"""The soak: a broker under mixed load with faults for an hour, and a verdict on memory, descriptors and latency."""
