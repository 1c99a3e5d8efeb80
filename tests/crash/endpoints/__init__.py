"""Peers of a broker that is killed, as frames over TCP: they remember across its deaths what they said and heard.

Rule. Each is a thread that connects again and again, and notes what the broker must never do. Each note begins with the
law that it breaks.
"""
