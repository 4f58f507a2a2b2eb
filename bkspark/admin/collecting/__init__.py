"""Collecting garbage: what deleted ledgers have left behind, by facts and never by absence."""
