"""Object storage, as bookies and metadata stores both use it: S3, uncached, nothing overwritten."""
