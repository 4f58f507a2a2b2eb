"""For authors of other backends: conformance suites."""

import pytest

# A failed assertion shows its values in a test run of another package, too.
pytest.register_assert_rewrite(
    f"{__name__}.bookie_conformance",
    f"{__name__}.bookie_place",
    f"{__name__}.metadata_conformance",
)
