"""The positions of a checkpoint, as Spark gives them to a stream's source."""

from typing import Any


class At(dict[str, Any]):
    """Equal to the same position of any cluster: what a position says of it has its own tests."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, dict) and dict(self) == {
            key: value for key, value in other.items() if key != "cluster"
        }


def at(offset: object, generation: int = 1) -> At:
    return At(version=1, generation=generation, offset=offset)
