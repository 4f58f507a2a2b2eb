"""For authors of other backends: conformance suites and fault injection."""
