"""Peers that we did not write against a broker of ours."""
