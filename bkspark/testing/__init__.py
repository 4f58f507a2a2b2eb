"""Shipped for those who write another backend: conformance suites and fault injection."""
