"""Audit: what metadata and journals say must be on each bookie, held against what is there."""
