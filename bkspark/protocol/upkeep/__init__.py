"""Maintenance of ledgers: repair, rebalancing, draining, members that leave, and idle ledgers.

Read ``repairing`` first: it says what a repair may change while other clients write and recover.
The other modules depend on its rules.
"""
