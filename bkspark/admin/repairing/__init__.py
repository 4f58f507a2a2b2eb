"""Repair: make missing copies of closed ledgers, worst first."""
