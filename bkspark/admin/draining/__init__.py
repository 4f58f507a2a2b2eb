"""Decommission: empty bookies while the cluster is in use, and remove empty bookies."""
