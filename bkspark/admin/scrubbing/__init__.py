"""Scrub: read and check every byte of every copy, and mark damage."""
