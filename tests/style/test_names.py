"""Names have one meaning: a class name stands once, and a module has the name of its subject."""

import re
from collections import defaultdict

from .sources import own_python_files

CLASS = re.compile(r"^ *class (\w+)[(:\[]", re.MULTILINE)


def test_a_class_name_has_one_meaning() -> None:
    found = defaultdict[str, set[str]](set)
    for path in own_python_files("bkspark"):
        for name in CLASS.findall(path.read_text(encoding="utf-8")):
            found[name].add(str(path))
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_a_module_has_the_name_of_its_subject() -> None:
    assert [path for path in own_python_files("bkspark") if path.stem in ("plan", "run")] == []
