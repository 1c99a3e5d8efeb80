"""Qpid Proton in Python against a broker of ours: what its users see, topic by topic."""
