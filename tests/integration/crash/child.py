"""The processes that are killed, or whose system calls fail: a fork server, and what it forks.

    python -m tests.integration.crash.child          # a line of JSON on its standard input: a child

Python takes a third of a second to import all that a client needs; a fork of a process that has it
takes a hundredth. A child speaks with the test through a socket of its own, because what it says
must be neither one of the calls that are made to fail nor be lost when it is killed.
"""

import importlib
import json
import logging
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import pyarrow as pa

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.hanging import TimedStore
from bkspark.cluster.password import Password, make_digester
from bkspark.errors import BookKeeperError
from bkspark.ledger.handles.backlog import Backlog
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.ledger.handles.write_handle import WriteHandle
from bkspark.ledger.recovery.recover import recover
from bkspark.ledger.recovery.recover import take_over as take_ledger_over
from bkspark.protocol.ledger.metadata import DigestSpec

from . import log_work

APPENDS = 3
REST_SECONDS = 0.1
# So that the calls of one run are those of every other one.
NEVER_IDLE = WriterSettings(explicit_lac_ms=0)


@dataclass(frozen=True)
class Order:
    """What a child is to do.

    Attributes:
        address: of the socket on which the test listens.
        work: name of one of the functions in ``WORK``.
        role: of the thread that the test wants to watch from its beginning on; may be empty.
        first: the first ledger that is of interest.
    """

    address: str
    work: str
    uri: str
    role: str = ""
    first: int = 0


class Line:
    """A child's end of its socket."""

    def __init__(self, order: Order) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(order.address)
        self._role = order.role
        self.say(process=os.getpid())

    def say(self, **event: Any) -> None:
        self._socket.sendall(json.dumps(event).encode() + b"\n")

    def hold(self, role: str, thread_id: int | None = None) -> None:
        """Wait until the test watches the thread in this role, if it wants to."""
        if role == self._role:
            self.say(thread=thread_id or threading.get_native_id())
            self._socket.recv(1)


def value_of(number: int) -> bytes:
    return b"entry %d" % number


def value_in(term: int, number: int) -> bytes:
    return b"entry %d of term %d" % (number, term)


def append(line: Line, order: Order) -> None:
    """Make a ledger, add to it, seal it; says what is acknowledged when it is."""
    line.hold("caller")
    with BookKeeper(order.uri) as keeper:
        handle = keeper.create_ledger(settings=NEVER_IDLE)
        line.say(ledger=handle.ledger_id)
        threads = {thread.name: thread.native_id for thread in threading.enumerate()}
        line.hold("writer", threads[f"ledger-{handle.ledger_id}"])
        for member in handle.metadata.last_fragment.ensemble:
            name = f"ledger-{handle.ledger_id}-{member.bookie_id}"
            line.hold(member.bookie_id, threads[name])
        for number in range(APPENDS):
            handle.append(value_of(number))
            line.say(acked=number)
        handle.close()
        line.say(closed=handle.last_add_confirmed)


def take_over(line: Line, order: Order) -> None:
    """Recover ledger 0, one instruction after the other, all in one thread."""
    line.hold("caller")
    with Cluster(order.uri) as cluster:
        report = recover(cluster, 0, Password(), run=_in_turn)
    line.say(closed=report.last_entry_id)


def read(line: Line, order: Order) -> None:
    """Read ledger 0 to its end."""
    line.hold("caller")
    with BookKeeper(order.uri) as keeper:
        reader = keeper.open_ledger(0, recovery=False)
        line.say(values=[entry.value.decode() for entry in reader.read()])


def keep_adding(line: Line, order: Order) -> None:
    """Make a ledger and add to it for ever, one to three entries at a time."""
    with BookKeeper(order.uri) as keeper:
        handle = keeper.create_ledger()
        line.say(ledger=handle.ledger_id)
        acked = -1
        for turn in count():
            group = range(acked + 1, acked + 2 + turn % 3)
            _, acked = handle.append_many([value_of(number) for number in group])
            line.say(acked=acked)


def go_on_behind(line: Line, order: Order) -> None:
    """Take ledger ``first`` over and add to it for ever, one to three entries at a time.

    Every second one rests before it writes: most of those are overtaken without an entry.
    """
    with Cluster(order.uri) as cluster:
        taken = take_ledger_over(cluster, order.first, Password())
        handle = WriteHandle(
            cluster,
            taken.seen,
            make_digester(DigestSpec(), Password()),
            begun=taken.begun,
            standing=taken.standing,
            unjoined=taken.unjoined,
        )
        term = taken.seen.value.term
        line.say(term=term)
        time.sleep(REST_SECONDS * (term % 2))
        acked = taken.standing.last_entry_id
        for turn in count():
            group = range(acked + 1, acked + 2 + turn % 3)
            first, acked = group[0], group[-1]
            assert handle.append_many([value_in(term, n) for n in group]) == (first, acked)
            line.say(acked=[term, first, acked])
            time.sleep(REST_SECONDS / 10)


def settle(line: Line, order: Order) -> None:
    """Recover and read whatever is there."""
    with BookKeeper(order.uri) as keeper:
        for ledger_id in keeper.list_ledgers():
            if ledger_id >= order.first:
                values = [entry.value.decode() for entry in keeper.open_ledger(ledger_id).read()]
                line.say(ledger=ledger_id, values=values)
    line.say(settled=True)


def go_on(line: Line, order: Order) -> None:
    """Recover and read whatever is there, and then write another ledger on the same bookies."""
    settle(line, order)
    with BookKeeper(order.uri) as keeper, keeper.create_ledger(ack_quorum_size=3) as handle:
        handle.append(value_of(0))
    line.say(closed=handle.last_add_confirmed)


WORK: dict[str, Callable[[Line, Order], None]] = log_work.WORK | {
    work.__name__: work
    for work in (append, take_over, read, keep_adding, go_on_behind, settle, go_on)
}


def _in_turn(instructions: Sequence[Any]) -> list[Any]:
    return [instruction.run() for instruction in instructions]


def _run(order: Order) -> None:
    line = Line(order)
    try:
        WORK[order.work](line, order)
    except BookKeeperError as error:
        line.say(error=type(error).__name__, text=str(error))
    except BaseException:
        line.say(traceback=traceback.format_exc())


def serve() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children
    pa.array([b""])  # imports pandas, with thousands of calls that are not ours
    importlib.import_module("s3fs")
    # What is logged is no call of ours, and which thread is the first to log it differs.
    logging.getLogger("bkspark").addHandler(logging.NullHandler())
    # Whoever asks the metadata store asks it himself, and no thread does the calls of another role.
    TimedStore._ask = lambda _store, question, *_: question()  # type: ignore[method-assign]
    # Nor does a lane that happens to be the last make the metadata check: the writer's task does.
    Backlog.is_quickly_told = False  # type: ignore[assignment,method-assign]
    print("ready", flush=True)
    for line in sys.stdin:
        if os.fork() == 0:
            _run(Order(**json.loads(line)))
            # Without a word to threads that may hang in a call: the process is over.
            os._exit(0)


if __name__ == "__main__":
    serve()
