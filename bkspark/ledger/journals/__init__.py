"""Reads journals of any length; only ``journal_reader`` walks through their bytes."""
