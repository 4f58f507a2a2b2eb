"""A ledger from Python: write_handle -> committer -> ensemble -> lane (entries); read_handle."""
