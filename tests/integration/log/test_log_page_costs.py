"""What is asked of the metadata store of a log of few ledgers, and of one of very many."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from bkspark.admin import views
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.password import Password
from bkspark.format import layout
from bkspark.log.log_handle import LogHandle
from bkspark.log.reading.log_view import look_at
from bkspark.protocol.log.ledger_list import LoggedLedger
from tests.integration.log_scenes import SILENT
from tests.integration.rig import Rig
from tests.kit.faulty import METADATA
from tests.log_with import log_with
from tests.small_pages import forget_pages


def costs(rig: Rig, keeper: BookKeeper, count: int) -> list[list[tuple[str, str]]]:
    """What is asked of the metadata store by each of the things that one does with a log."""
    name = f"log-{count}"
    keeper.create_log(name)
    places = tuple(LoggedLedger(10**6 + n, 3 * n, 3, 100, 1) for n in range(count))
    keeper._cluster.logs.update(name, lambda record: log_with(record, ledgers=places))  # type: ignore[arg-type, type-var]
    found = []

    def asked(what: Callable[[LogHandle], object]) -> None:
        forget_pages()
        rig.faults.forget()
        with rig.faults.installed(), BookKeeper(rig.uri) as faulty:
            what(faulty.open_log(name))
        trace = [one for one in rig.faults.trace if one.place == METADATA]
        found.append([(one.call, one.name.split("/")[0]) for one in trace])

    def append(log: LogHandle) -> None:
        with log.writer(settings=SILENT) as writer:
            writer.append(b"one")

    def look(log: LogHandle) -> None:
        view = look_at(log._cluster, name, Password())
        middle = count * 3 // 2
        assert [one.ledger_id for one in view.ledgers_in(middle, middle + 1)] == [
            10**6 + middle // 3
        ]
        assert view.bytes_in(1, middle) > 0

    asked(append)
    asked(append)
    asked(lambda log: log.end_offset)
    asked(look)
    asked(lambda log: log.record.truncated(count * 3 // 2))
    asked(lambda log: views.logs(log._cluster, name))
    stored = keeper._cluster.store.get(layout.log_key(name))
    assert stored is not None
    found.append([("bytes", str(len(stored.value)))])
    return found


def test_a_log_of_100_000_ledgers_costs_what_one_of_a_hundred_does(tmp_path: Path) -> None:
    rig = Rig(tmp_path, metadata="memory")
    with BookKeeper(rig.uri) as keeper:
        found = {count: costs(rig, keeper, count) for count in (100, 1000, 10_000, 100_000)}
    of_few, *_, of_many = found.values()
    append, append_again, end, look, truncate, listing, _ = zip(of_few, of_many, strict=True)
    for few, many in (append, append_again, end, listing):
        assert few == many
    for few, many in (look, truncate):
        levels = 3
        assert Counter(many) - Counter(few) <= Counter({("get", "pages"): 2 * levels})
    sizes = {count: int(steps[-1][0][1]) for count, steps in found.items()}
    assert sizes[100_000] < 40_000
