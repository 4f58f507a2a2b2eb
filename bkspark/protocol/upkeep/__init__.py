"""Ledgers that are looked after: repaired, evened out, drained, left by bookies, and let go.

Read ``repairing`` first: what a repair may change while others write and recover; the rest stands
on it.
"""
