"""Test doubles: storage that fails on demand, and real servers of S3 and ZooKeeper."""
