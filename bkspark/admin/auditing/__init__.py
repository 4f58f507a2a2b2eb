"""Audit: compare the required content of each bookie, by metadata and journals, with its files."""
