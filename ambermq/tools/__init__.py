"""What a person or a pipeline runs: the command line and the tools behind it."""
