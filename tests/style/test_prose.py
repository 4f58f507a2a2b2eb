"""Docstrings name the actor and the thing, so that each sentence is understood at first reading."""

import ast
import re
from functools import cache

from .sources import own_python_files

WORDS_OF = 1_000
VAGUE_MAX = 60
"""Words a thousand that stand for a thing named elsewhere; in well-read libraries 16 to 61."""

VAGUE = re.compile(
    r"\b(it|its|this|that|these|those|they|them|one|ones|others?|another|what|which"
    r"|something|nothing|everything)\b",
    re.IGNORECASE,
)
PERSONS = re.compile(r"\b(who|whoever|whom|somebody|nobody|anybody)\b", re.IGNORECASE)
"""A process is named: the writer, the reader, a recovery, a task, the driver, the operator."""

PARAMETER = re.compile(r"^\s*\w+: ", re.MULTILINE)


@cache
def docstrings() -> list[tuple[str, str]]:
    """Return each docstring of the product with its place; names of parameters are left out."""
    found = []
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for path in own_python_files("bkspark"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, kinds) and (text := ast.get_docstring(node)):
                place = f"{path.name}:{getattr(node, 'lineno', 1)}"
                found.append((place, PARAMETER.sub("", text)))
    return found


def test_docstrings_name_what_they_speak_of() -> None:
    texts = [text for _, text in docstrings()]
    words = sum(len(text.split()) for text in texts)
    vague = sum(len(VAGUE.findall(text)) for text in texts)
    assert vague * WORDS_OF <= VAGUE_MAX * words, f"{vague * WORDS_OF / words:.0f}"


def test_docstrings_take_no_process_for_a_person() -> None:
    offending = [
        f"{place}: {text.splitlines()[0]}" for place, text in docstrings() if PERSONS.search(text)
    ]
    assert offending == []
