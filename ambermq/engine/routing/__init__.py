"""Matching: which attachments of a muxer a message passes on by. Derived from wiring, volatile, bounded."""
