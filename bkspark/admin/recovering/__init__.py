"""Recovering many ledgers in one run: all whose writers are gone, or those that are named."""
