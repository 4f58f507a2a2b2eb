"""Rebalance: move places of closed ledgers until bookies are about equally used."""
