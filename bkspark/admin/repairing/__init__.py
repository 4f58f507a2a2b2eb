"""Repair: copies that are missing of closed ledgers are made again, the worst first."""
