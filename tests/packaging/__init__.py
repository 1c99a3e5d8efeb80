"""The distribution: what it holds, and that it works wherever it is installed and started."""
