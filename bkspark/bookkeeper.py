"""``BookKeeper``: logs and ledgers from Python, without Spark."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import pyarrow as pa

from bkspark.admin.absent_bookies import declare_lost
from bkspark.cluster import arguments, client_metrics
from bkspark.cluster.bookie_status import BookieStatus
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.election import Election
from bkspark.cluster.guards import BoundToProcess
from bkspark.cluster.log_messages import leave_out
from bkspark.cluster.password import Password, make_digester
from bkspark.cluster.records import Versioned
from bkspark.errors import CorruptDataError, InvalidRequestError
from bkspark.format import arrow_schema, digest, layout, schema_text
from bkspark.ledger.creating import LOG_KEY, create_ledger
from bkspark.ledger.deleting import delete_ledger, delete_log
from bkspark.ledger.handles.adv_handle import (
    GAP_TIMEOUT_SECONDS,
    WAITING_BYTES_MAX,
    AdvWriteHandle,
)
from bkspark.ledger.handles.entries import VALUE_SCHEMA
from bkspark.ledger.handles.read_handle import ReadHandle
from bkspark.ledger.handles.settings import USUAL, USUAL_READS, ReaderSettings, WriterSettings
from bkspark.ledger.handles.write_handle import WriteHandle
from bkspark.ledger.recovery.recover import RecoveryReport
from bkspark.log.creating import create_log
from bkspark.log.log_handle import LogHandle
from bkspark.log.recovering import recover_ledger
from bkspark.metadata import freshness, patience
from bkspark.protocol.ledger.metadata import LedgerState
from bkspark.protocol.ledger.quorum import DEFAULT_QUORUM, Quorum
from bkspark.protocol.log.contents import LogSettings
from bkspark.storage.address import shown_url

T = TypeVar("T")


class BookKeeper(BoundToProcess):
    """A connection to one cluster.

    ``create_ledger`` and ``create_log`` take the same settings:

    - ``ensemble_size``: how many bookies a ledger uses.
    - ``write_quorum_size``: how many of them store each entry.
    - ``ack_quorum_size``: how many must have stored an entry before its acknowledgement.
    - ``digest_type``: ``CRC32C``, or ``MAC``, which needs a ``password``.
    - ``schema``: the columns of the rows, as an Arrow schema or as Spark text
      (``id long, name string``). None is bytes.
    - ``guarantees_write_quorum``: a ledger is closed only when each entry is on
      ``write_quorum_size`` bookies. If too few bookies are left, the ledger stays open.
      Acknowledgements do not wait for these copies.
    - ``strict``: refuse to make a ledger on fewer bookies than ``ensemble_size``. Otherwise
      ``ack_quorum_size`` bookies are enough. A guaranteed write quorum is always strict.
    - ``min_distinct``: labels of bookies that must differ, for example ``{"rack": 2}``. The bookies
      that store an entry have at least so many values of each label. Otherwise the ledger is not
      made.

    Args:
        metadata_uri: the metadata store, for example ``file:///data/meta``. None takes the
            environment variable ``BKSPARK_METADATA_URI``.
        metadata_timeout: seconds for which a call waits for the metadata store. None takes
            ``BKSPARK_METADATA_TIMEOUT``, or 30.

    Raises:
        InvalidRequestError: no cluster is named, the URI or the timeout is not valid, or there is
            no cluster at the URI.
    """

    def __init__(
        self, metadata_uri: str | None = None, *, metadata_timeout: float | None = None
    ) -> None:
        seconds = metadata_timeout
        if seconds is not None:
            seconds = patience.possible("metadata_timeout", seconds)
        self._connected = Cluster(arguments.metadata_uri(metadata_uri), seconds)
        client_metrics.register_if_imported()
        self._is_closed = False

    def __repr__(self) -> str:
        closed = ", closed" if self._is_closed else ""
        return f"BookKeeper({shown_url(self._connected.uri)!r}{closed})"

    def __enter__(self) -> "BookKeeper":
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_of_this_process:
            self.close()

    def close(self) -> None:
        """Release the connection. Handles made from the connection must not be used afterwards."""
        self.require_own_process()
        self._is_closed = True
        self._connected.store.close()

    def create_ledger(
        self,
        *,
        ensemble_size: int = DEFAULT_QUORUM.ensemble_size,
        write_quorum_size: int = DEFAULT_QUORUM.write_quorum_size,
        ack_quorum_size: int = DEFAULT_QUORUM.ack_quorum_size,
        digest_type: str = digest.CRC32C,
        password: str | None = None,
        custom_metadata: Mapping[str, str] | None = None,
        schema: pa.Schema | str | None = None,
        guarantees_write_quorum: bool = False,
        strict: bool = False,
        min_distinct: Mapping[str, int] | None = None,
        settings: WriterSettings = USUAL,
    ) -> WriteHandle:
        """Make a new ledger and become its one writer. ``BookKeeper`` explains most settings.

        Args:
            custom_metadata: texts by name, kept with the ledger's metadata; ``log`` is taken.
            settings: settings of the writer, which are not stored.

        Raises:
            InvalidRequestError: a value is not valid, or a password is given that nothing needs.
            UnauthorizedError: the digest type is MAC, and there is no password.
            NotEnoughBookiesError: too few bookies can be used.
        """
        quorum = _quorum(ensemble_size, write_quorum_size, ack_quorum_size)
        secret = Password(literal=password or "")
        spec = digest.new_spec(digest_type, secret.resolve())
        digester = make_digester(spec, secret)
        is_full = arguments.yes_or_no("guarantees_write_quorum", given=guarantees_write_quorum)
        notes = arguments.texts_by_name("custom_metadata", custom_metadata, taken=LOG_KEY)
        begun = freshness.begin()
        created = create_ledger(
            self._cluster,
            quorum=quorum,
            digest=spec,
            schema=arrow_schema.encode(_row_schema(schema)),
            custom_metadata=notes,
            digester=digester,
            guarantees_write_quorum=is_full,
            is_strict=arguments.yes_or_no("strict", given=strict),
            min_distinct=arguments.distinct(min_distinct, quorum),
        )
        with freshness.at(begun):  # the bookies' places are as new as that
            return WriteHandle(
                self._cluster, created.seen, digester, begun=created.begun, settings=settings
            )

    def create_ledger_adv(
        self,
        *,
        waiting_bytes_max: int = WAITING_BYTES_MAX,
        gap_timeout_seconds: float = GAP_TIMEOUT_SECONDS,
        settings: WriterSettings = USUAL,
        **choices: Any,
    ) -> AdvWriteHandle:
        """Make a new ledger of bytes whose writer chooses the entry ids (BookKeeper's "adv").

        Args:
            waiting_bytes_max, gap_timeout_seconds: see ``AdvWriteHandle``.
            settings: settings of the writer.
            choices: as for ``create_ledger``, except ``schema``.

        Raises:
            BookKeeperError: as for ``create_ledger``.
        """
        if "schema" in choices:
            raise InvalidRequestError(
                "create_ledger_adv takes entries of bytes only",
                hint="use create_ledger for rows of a schema",
            )
        bytes_max = arguments.whole_number("waiting_bytes_max", waiting_bytes_max, least=1)
        gap_seconds = arguments.duration(
            "gap_timeout_seconds", gap_timeout_seconds, hint="give seconds", may_be_0=True
        )
        return AdvWriteHandle(
            self.create_ledger(settings=settings, **choices),
            waiting_bytes_max=bytes_max,
            gap_timeout_seconds=gap_seconds,
            wait_seconds_max=settings.wait_seconds_max,
        )

    def open_ledger(
        self,
        ledger_id: int,
        *,
        recovery: bool = True,
        password: str | None = None,
        settings: ReaderSettings = USUAL_READS,
    ) -> ReadHandle:
        """Open a ledger for reading.

        Args:
            recovery: True fences the ledger's writer, recovers the ledger and closes it first. The
                open ledger of an unbounded log is OPEN again after that. False never disturbs the
                writer, and reads up to the last-add-confirmed.
            password: the ledger password, if the ledger has one.
            settings: settings of the reader, for example
                ``ReaderSettings(speculative_read_ms=20)``.

        Raises:
            NoSuchLedgerError: there is no such ledger.
            UnauthorizedError: the password is missing or wrong. No writer was fenced.
            NotEnoughBookiesError: the ledger cannot be recovered yet. The message says why.
        """
        number, secret = _ledger_id(ledger_id), Password(literal=password or "")
        fences = arguments.yes_or_no("recovery", given=recovery)
        with freshness.from_here():
            seen = self._cluster.ledger(number)
            digester = make_digester(seen.value.settings.digest, secret)
            if fences:
                with freshness.now():
                    recover_ledger(self._cluster, number, secret, seen=seen)
            return ReadHandle(self._cluster, number, digester, settings=settings)

    def recover_ledger(
        self,
        ledger_id: int,
        *,
        password: str | None = None,
        accepts_loss: bool = False,
        seal: bool = False,
    ) -> RecoveryReport:
        """Fence a ledger's writer, recover the ledger and close it.

        Args:
            password: the ledger password, if the ledger has one.
            accepts_loss: accept that entries are lost if only lost or damaged bookies could tell
                whether they were acknowledged. The report names them.
            seal: also close the open ledger of an unbounded log. Otherwise it is OPEN again
                (``report.is_open``).

        Raises:
            NoSuchLedgerError: there is no such ledger.
            UnauthorizedError: the password is missing or wrong. No writer was fenced.
            NotEnoughBookiesError: the end cannot be decided yet. The message names the bookies that
                could tell, and what helps.
        """
        number, secret = _ledger_id(ledger_id), Password(literal=password or "")
        may_lose = arguments.yes_or_no("accepts_loss", given=accepts_loss)
        return recover_ledger(
            self._cluster,
            number,
            secret,
            seals=arguments.yes_or_no("seal", given=seal),
            accepts_loss=lambda _loss: may_lose,
        )

    def declare_bookie_lost(self, bookie_id: str, *, incarnation: str = "") -> None:
        """Declare that a bookie will never come back. The declaration is final.

        Args:
            incarnation: which incarnation of the bookie is lost; empty for the registered one.

        Raises:
            InvalidRequestError: there is no such bookie or incarnation, or the bookie answers.
        """
        declare_lost(self._cluster, bookie_id, incarnation)

    def delete_ledger(self, ledger_id: int) -> None:
        """Delete a ledger that is in no log, for good. Its id is never used again.

        ``bkspark collect`` frees its space.
        """
        delete_ledger(self._cluster, _ledger_id(ledger_id))

    def create_log(
        self,
        name: str,
        *,
        ensemble_size: int = DEFAULT_QUORUM.ensemble_size,
        write_quorum_size: int = DEFAULT_QUORUM.write_quorum_size,
        ack_quorum_size: int = DEFAULT_QUORUM.ack_quorum_size,
        digest_type: str = digest.CRC32C,
        password: str | None = None,
        schema: pa.Schema | str | None = None,
        guarantees_write_quorum: bool = False,
        unbounded: bool = False,
        strict: bool = False,
        min_distinct: Mapping[str, int] | None = None,
    ) -> LogHandle:
        """Create an empty log. All its ledgers get these settings, which ``BookKeeper`` explains.

        Args:
            schema: None leaves it to the first client: a DataFrame's append gives its columns, and
                ``LogHandle.writer`` makes it a log of bytes.
            guarantees_write_quorum: also, an append of a DataFrame or a stream has all its copies
                before it is committed.
            unbounded: make the log one ledger, which each writer takes over in the next term.

        Raises:
            LedgerExistsError: there is a log of this name.
            InvalidRequestError: the name, the sizes, the digest type or the schema are not valid,
                or a password is given that nothing needs.
            UnauthorizedError: the digest type is MAC, and there is no password.
        """
        quorum = _quorum(ensemble_size, write_quorum_size, ack_quorum_size)
        secret = Password(literal=password or "")
        spec = digest.new_spec(digest_type, secret.resolve())
        is_full = arguments.yes_or_no("guarantees_write_quorum", given=guarantees_write_quorum)
        is_unbounded = arguments.yes_or_no("unbounded", given=unbounded)
        is_strict = arguments.yes_or_no("strict", given=strict)
        apart = arguments.distinct(min_distinct, quorum)
        settings = LogSettings(quorum, spec, is_full, is_unbounded, is_strict, apart)
        create_log(self._cluster, name, settings, _row_schema(schema))
        return LogHandle(self._cluster, name, secret)

    def open_log(self, name: str, *, password: str | None = None) -> LogHandle:
        """Open a log, without fencing its writer.

        Raises:
            NoSuchLedgerError: there is no such log.
            UnauthorizedError: the password is missing or wrong.
        """
        secret = Password(literal=password or "")
        make_digester(self._cluster.log(layout.log_name(name)).value.digest, secret)
        return LogHandle(self._cluster, name, secret)

    def delete_log(self, name: str) -> list[int]:
        """Delete a log and all its ledgers, for good.

        Returns:
            The ids of the deleted ledgers.

        Raises:
            NoSuchLedgerError: there is no such log.
        """
        return delete_log(self._cluster, name)

    def election(
        self,
        name: str,
        *,
        on_lost: Callable[[], object] = lambda: None,
        timeout: float | None = None,
    ) -> Election:
        """Return the election of one leader among the processes that take part in it.

            with bk.election("ingest") as election:          # waits until this process leads
                with bk.open_log("events").writer(election=election) as writer:
                    ...

        An election is advisory: it says which process should write, and fencing protects the log.

        Args:
            on_lost: called once, in another thread, when this process leads no longer before the
                block ends. It may come late if the metadata store does not answer;
                ``election.is_leader`` is never late.
            timeout: seconds to wait for the leadership. None waits for ever.

        Raises:
            InvalidRequestError: the name or the timeout is not valid.
        """
        return Election(self._cluster, name, on_lost=on_lost, timeout=timeout)

    def list_logs(self) -> list[str]:
        """The names of all logs, in ascending order, with logs whose record cannot be read."""
        answers = self._cluster.logs.answers(self._cluster.log_names())
        return [name for name, log in answers if _may_be(log, lambda log: not log.is_tombstone)]

    def list_ledgers(self) -> list[int]:
        """The ids of all ledgers that are not deleted, in ascending order.

        Ledgers whose record cannot be read are among them.
        """
        answers = self._cluster.ledgers.answers(map(str, self._cluster.ledger_ids()))
        lives = lambda ledger: ledger.state is not LedgerState.DELETING  # noqa: E731
        return [int(number) for number, ledger in answers if _may_be(ledger, lives)]

    def list_bookies(self) -> list[BookieStatus]:
        """All registered bookies, and whether each can be used now.

        A bookie whose record cannot be read is left out, with a warning.
        """
        return self._cluster.probe(step_over=leave_out)

    @property
    def _cluster(self) -> Cluster:
        self.require_own_process()
        if self._is_closed:
            raise InvalidRequestError("this BookKeeper is closed", hint="open another BookKeeper")
        return self._connected


def _may_be(answer: Callable[[], Versioned[T] | None], lives: Callable[[T], bool]) -> bool:
    """Return whether a record is there and ``lives``; True if it is unreadable, because unknown is
    never absent.
    """
    try:
        seen = answer()
    except CorruptDataError:
        return True
    return seen is not None and lives(seen.value)


def _row_schema(given: object) -> pa.Schema:
    if given is None:
        return VALUE_SCHEMA
    if isinstance(given, str):
        return schema_text.parse(given)
    what, hint = "a schema must be a pyarrow.Schema", "pyarrow.schema() makes one; None means bytes"
    return arguments.instance(what, given, pa.Schema, hint=hint)


def _ledger_id(given: object) -> int:
    return arguments.whole_number("a ledger id", given)


def _quorum(ensemble_size: object, write_quorum_size: object, ack_quorum_size: object) -> Quorum:
    return Quorum(
        arguments.whole_number("ensemble_size", ensemble_size),
        arguments.whole_number("write_quorum_size", write_quorum_size),
        arguments.whole_number("ack_quorum_size", ack_quorum_size),
    )
