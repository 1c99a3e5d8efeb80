"""Qpid Proton's driver: `python -m tests.interop.matrix.proton.driver URL BEHAVIOUR...`."""
