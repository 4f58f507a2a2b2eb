"""Mutants of how a client notices that another store is in the place of the one it opened."""

from .mutant import Mutant

ANOTHER = "tests/unit/metadata/test_another_store.py::test_it_is_refused"

MUTANTS = (
    Mutant(
        "another store of files is taken for the one that was opened",
        "VersionedStore._require_marker",
        "        if marker != self._bound_to:\n",
        "        if not marker:\n",
        (f"{ANOTHER}[file-create]", f"{ANOTHER}[file-get]"),
    ),
    Mutant(
        "all stores of files have one marker",
        "VersionedStore._mark",
        '        marker = _MARKER_TEXT + environment.token().encode() + b"\\n"\n',
        "        marker = _MARKER_TEXT\n",
        (f"{ANOTHER}[file-create]",),
    ),
    Mutant(
        "another store in memory is taken for the one that was opened",
        "MemoryMetadataStore._records",
        "        if found is not self._bound_to:\n",
        "        if found is None:\n",
        (f"{ANOTHER}[memory-create]",),
    ),
)
