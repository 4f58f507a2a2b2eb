"""All states of a small world, with the protocol's own machines."""
