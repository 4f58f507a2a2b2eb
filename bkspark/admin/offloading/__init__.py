"""Offloads a log: copies its older rows to a Delta table, and verifies them there."""
