"""Looking after a cluster: views, a check of its replicas, lost bookies, sweeping, deleting."""
