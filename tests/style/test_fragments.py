"""Only writers, recoveries and changes of the record know fragments; all else asks Locations."""

import ast
from functools import cache

from .sources import ROOT, own_python_files

FRAGMENTS = {"fragments", "last_fragment", "fragment_of", "fragment_index"}

MAY_KNOW = {
    "protocol/ledger": "defines the record, its changes, and Locations",
    "protocol/writer": "the writer's machine begins fragments",
    "protocol/recovery": "the recovery's machine closes or continues the last fragment",
    "protocol/upkeep/repairing.py": "makes the record that names another member",
    "protocol/log/retention.py": "a fragment says when and where it began",
    "format/ledger_metadata.py": "encodes the record",
    "ledger/handles/writer.py": "runs the writer's machine",
    "ledger/handles/read_handle.py": "compares two versions of the record",
    "ledger/journals": "finds the journals of each term",
    "ledger/recovery": "runs the recovery's machine",
    "cluster/enlisting.py": "the last fragment names the writer of a journal",
}
"""Folders and modules that may touch a ledger's fragments, and why; this list only shrinks."""


@cache
def touching() -> set[str]:
    """The modules that touch fragments of a ledger."""
    texts = {path: path.read_text("utf-8") for path in own_python_files("bkspark")}
    return {
        path.relative_to(ROOT / "bkspark").as_posix()
        for path, text in texts.items()
        if any(f".{name}" in text for name in FRAGMENTS)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr in FRAGMENTS
    }


def test_no_other_module_touches_the_fragments_of_a_ledger() -> None:
    outside = {
        name
        for name in touching()
        if not any(name == known or name.startswith(f"{known}/") for known in MAY_KNOW)
    }
    assert not outside, "ask bkspark.protocol.ledger.locations.Locations instead"


def test_each_exception_is_still_needed() -> None:
    found = touching()
    unneeded = {
        known
        for known in MAY_KNOW
        if not any(name == known or name.startswith(f"{known}/") for name in found)
    }
    assert not unneeded, "take it from the list"
