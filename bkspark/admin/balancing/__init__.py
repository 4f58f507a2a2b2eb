"""Rebalance: places of closed ledgers move until bookies are about equally used."""
