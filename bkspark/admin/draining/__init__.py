"""Decommission: bookies are emptied while the cluster is used, and removed when they are empty."""
