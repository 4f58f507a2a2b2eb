"""Bytes and names <-> protocol values. No files are opened here."""
