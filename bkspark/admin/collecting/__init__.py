"""Collect garbage of deleted ledgers, proved by records and never by absence."""
