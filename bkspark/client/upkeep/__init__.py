"""Looking after a cluster: views of it, a check of its replicas, deleting."""
