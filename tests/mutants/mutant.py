"""One rule of the source, broken."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One rule broken.

    Attributes:
        name: says what the mutant does wrong.
        file: path of the source, relative to the package, or to the repository for that of tests.
        old: text that is replaced; occurs exactly once.
        new: what replaces it.
        killers: node ids of tests that all must fail.
    """

    name: str
    file: str
    old: str
    new: str
    killers: tuple[str, ...]

    @property
    def path(self) -> str:
        """Of the source, relative to the repository."""
        return self.file if self.file.startswith("tests/") else f"bkspark/{self.file}"
