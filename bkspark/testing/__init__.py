"""For authors of other backends: conformance suites."""
