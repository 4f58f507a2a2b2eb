"""bkspark beside BookKeeper, Kafka, Delta and parquet: one run, the same rows, the same disk."""
