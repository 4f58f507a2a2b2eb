"""Runs the protocol against bookies and a metadata store. No Spark here."""
