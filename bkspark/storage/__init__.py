"""Object storage for bookies and metadata stores: S3, uncached, no object overwritten."""
