"""Scrub: every byte of every copy is read and checked, and what is damaged is marked."""
