"""Converts protocol values to bytes and names, and back. No files are opened here."""
