"""Readers of journals on several bookies at once."""

import threading

from bkspark.format.digest import Digester
from bkspark.ledger.journals.journal_reader import JournalReader
from bkspark.protocol.ledger.metadata import DigestSpec

SECONDS_MAX = 20.0


class Root:
    """Storage that says when it is asked, and does not answer before it may."""

    def __init__(self) -> None:
        self.is_asked = threading.Event()
        self.may_answer = threading.Event()

    def size(self, _name: str) -> int:
        self.is_asked.set()
        self.may_answer.wait(60)
        return 7


def ask(root: Root, found: list[int]) -> threading.Thread:
    reader = JournalReader(root, "journal", Digester(DigestSpec()), ledger_id=1)  # type: ignore[arg-type]
    asking = threading.Thread(target=lambda: found.append(reader.size), daemon=True)
    asking.start()
    return asking


def test_a_bookie_that_hangs_holds_up_no_reader_of_another_one() -> None:
    hanging, other, found = Root(), Root(), list[int]()
    other.may_answer.set()
    hangs = ask(hanging, found)
    assert hanging.is_asked.wait(60)
    ask(other, found).join(SECONDS_MAX)
    seen = list(found)
    hanging.may_answer.set()
    hangs.join(60)
    assert (seen, found) == ([7], [7, 7])
