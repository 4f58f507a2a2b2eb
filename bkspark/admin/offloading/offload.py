"""``offload``: copy the older rows of a log to its table, and verify them there.

Each segment goes through the same steps, and a killed offload is gone on with by the next one:

1. The record gets the *intent*: which offsets are copied (``protocol.log.offloading``, rule 1).
2. Spark appends them by one commit. The commit has a transaction, so a second append of the same
   offsets changes nothing.
3. On a disk, the files of the commit are made durable.
4. The rows are read back and compared with those in the ledgers ("checking").
5. The digests are stored, and the record gets the segment.

Rule. Nothing is cleaned up after an error or an unknown outcome: the next offload finds the intent.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from bkspark import environment
from bkspark.admin.maintenance import IN_THREADS, Execution, Facts, Pace, Report, noted
from bkspark.admin.offloading import refusals
from bkspark.admin.offloading.checking import (
    LogRows,
    TableView,
    may_be_changed,
    require_segments,
    table_view,
    verified,
)
from bkspark.admin.offloading.copier import FENCE_VERSION, PLACE_COLUMNS, Copier, CopyOrder
from bkspark.admin.offloading.ending import with_page
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.fan_out import no_heartbeat
from bkspark.cluster.password import Password, make_digester
from bkspark.errors import (
    InvalidRequestError,
    MetadataVersionError,
    NoSuchTableError,
    OutcomeUnknownError,
    TableChangedError,
)
from bkspark.format import arrow_schema, layout
from bkspark.format.tier_record import DigestsPage
from bkspark.log.recovering import with_listed_tail
from bkspark.protocol.bounds import SEGMENT_BYTES
from bkspark.protocol.log import offloading
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.tier import Intent, Tier, TierColumn
from bkspark.storage.address import shown_url
from bkspark.storage.folders import folder_url
from bkspark.storage.posix_calls import sync_files

if TYPE_CHECKING:
    from bkspark.table.conversion import Located
    from bkspark.table.snapshot import Snapshot

VERB = "offload"

_LOOKS_MAX = 5


@dataclass(frozen=True, slots=True)
class OffloadRequest:
    """Arguments of an offload.

    Attributes:
        table: URL of the table; empty for the log's table.
        older_than: seconds since the close of the youngest ledger that is copied; None for all.
        keep_bytes: payload of the newest rows that are not copied.
        segment_bytes: payload of one commit.
        accepts_single_copy: whether a table on a disk is good enough.
        accepts_unprotected: whether a log with a password may have a table.
        bytes_per_second: payload, on average over all commits; None for unlimited.
    """

    table: str = ""
    older_than: float | None = None
    keep_bytes: int = 0
    segment_bytes: int = SEGMENT_BYTES
    accepts_single_copy: bool = False
    accepts_unprotected: bool = False
    password: Password = field(default_factory=Password)
    bytes_per_second: float | None = None


def offload(
    cluster: Cluster,
    log_name: str,
    wanted: OffloadRequest,
    copier: Copier | None,
    how: Execution = IN_THREADS,
) -> Report:
    """Copy the closed ledgers of a log that are due, segment by segment.

    Args:
        copier: writes the table; may be None for a dry run.

    Raises:
        NoSuchLedgerError: no such log.
        InvalidRequestError: the log, the place or the table cannot keep the rows.
        TableChangedError: the table does not have the rows that were written to it.
    """
    began_ms = environment.now_ms()
    work = _Offload(cluster, log_name, wanted, began_ms)
    plan = work.plan()
    if how.dry_run:
        return Report(VERB, plan)
    if copier is None:
        raise InvalidRequestError(
            "an offload needs Spark with Delta, which writes the table",
            hint="give a session made by bkspark.configure_delta",
        )
    return noted(cluster, work.carry_out(copier, how, plan), began_ms)


def require_possible(log: LogRecord, wanted: OffloadRequest, tier: Tier | None) -> str:
    """Return the address of the table; raise if the log cannot be offloaded to it.

    Args:
        tier: of the log; None if it gets another one. What the operator accepted of a table holds
            for as long as the log has this table.

    Raises:
        InvalidRequestError: the log, the place or the request are not good enough.
        UnauthorizedError: the log's password is missing or wrong.
    """
    make_digester(log.digest, wanted.password)
    refusals.require_columns(log)
    if tier is None and not wanted.table:
        raise InvalidRequestError(f"log {log.name!r} has no table yet", hint="give --table URL")
    if tier is not None and wanted.table and folder_url(wanted.table) != tier.table_url:
        raise InvalidRequestError(
            f"log {log.name!r} is offloaded to {shown_url(tier.table_url)}",
            hint="run the command again: it looks for the rows in the table that you gave",
        )
    return refusals.require_place(
        log,
        wanted.table if tier is None else tier.table_url,
        accepts_single_copy=wanted.accepts_single_copy or tier is not None,
        accepts_unprotected=wanted.accepts_unprotected or tier is not None,
    )


class _Offload:
    """One run of ``offload``."""

    def __init__(
        self, cluster: Cluster, log_name: str, wanted: OffloadRequest, now_ms: int
    ) -> None:
        self._cluster = cluster
        self._wanted = wanted
        self._log = with_listed_tail(cluster, cluster.log(log_name).value)
        self._generation = self._log.generation
        self._now_ms = now_ms
        self._url = require_possible(self._log, wanted, self._log.tier)

    # --- plan ----------------------------------------------------------------------------------

    def plan(self) -> Facts:
        log, tier = self._log, self._log.tier
        begin, end = offloading.next_begin(log), self._due_end(log)
        begun = None if tier is None else tier.intent
        if begun is not None:
            begin, end = begun.begin, max(end, begun.end)
        return {
            "log": log.name,
            "table": self._url,
            "first_offset": begin,
            "end_offset": end,
            "entries": end - begin,
            "bytes": log.bytes_in(begin, end),
            "copied": 0 if tier is None else tier.copied,
            "is_begun": begun is not None,
            "open_ledger": next(iter(log.tail), None),
        }

    def _due_end(self, log: LogRecord, most_bytes: int = 0, upto: int | None = None) -> int:
        older = self._wanted.older_than
        return offloading.eligible_end(
            log,
            closed_before_ms=None if older is None else self._now_ms - int(older * 1000),
            keep_bytes=self._wanted.keep_bytes,
            most_bytes=most_bytes,
            upto=upto,
        )

    # --- steps ---------------------------------------------------------------------------------

    def carry_out(self, copier: Copier, how: Execution, plan: Facts) -> Report:
        done, length, segments = 0, 0, 0
        pace = Pace(self._wanted.bytes_per_second, no_heartbeat)
        total = int(plan["entries"])
        how.progress(0, total)
        if self._cluster.log(self._log.name).value.tail != self._log.tail:
            self._changed(lambda record: with_listed_tail(self._cluster, record))
        while True:
            log = self._with_intent(copier, int(plan["end_offset"]))
            intent = None if log.tier is None else log.tier.intent
            if log.tier is None or intent is None:
                break
            self._copy(copier, log, log.tier, intent)
            page_of = partial(self._verify, step=_steps(how, done, total))
            copied = self._record(log, log.tier, intent, page_of)
            done, segments = done + intent.end - intent.begin, segments + 1
            length += copied
            how.progress(min(done, total), total)
            if done < total:
                pace.passed(copied)
        self._look_again(log)
        return Report(
            VERB,
            plan,
            {"entries": done, "segments": segments, "bytes": length},
            counters={"NUM_ROWS_OFFLOADED": done, "NUM_BYTES_OFFLOADED": length},
        )

    def _with_intent(self, copier: Copier, upto: int) -> LogRecord:
        """Return the log with an intent, the one that is there or a new one, if rows are due."""
        log = self._cluster.log(self._log.name).value.still_of(self._generation)
        end = self._due_end(log, self._wanted.segment_bytes, upto)
        is_due = end > offloading.next_begin(log)
        if log.tier is None and is_due:
            return self._attached(copier, log, end)
        if log.tier is None or log.tier.intent is not None or not is_due:
            return log
        epoch = log.tier.epoch
        found = own_table(self._cluster, log, log.tier).snapshot
        intent = Intent(offloading.next_begin(log), end, environment.token(), found.version)
        return self._changed(lambda record: offloading.with_intent(record, epoch, intent))

    def _attached(self, copier: Copier, log: LogRecord, end: int) -> LogRecord:
        """Make or adopt the table, and record it together with the first intent."""
        epoch = environment.token()
        order = self._order(log, epoch, 0)
        properties = {
            refusals.LOG_PROPERTY: refusals.property_of(self._cluster.cluster_id, log, epoch)
        }
        try:
            found = table_view(self._url, ()).snapshot
        except NoSuchTableError:
            copier.create(order, properties)
            found = self._made()
        if not self._is_claimed(log, found):
            refusals.require_table(log, found)
            refusals.require_empty(log, found)
            copier.claim(self._url, properties)
            found = table_view(self._url, ()).snapshot
        refusals.require_table(log, found)
        refusals.require_empty(log, found)
        epoch = refusals.epoch_in(self._cluster.cluster_id, log, found) or epoch
        intent = Intent(offloading.next_begin(log), end, environment.token(), found.version)
        return self._changed(
            lambda record: offloading.attached(record, self._url, found.table_id, epoch, intent)
        )

    def _made(self) -> "Snapshot":
        """The new table. Spark makes none where another driver has begun to."""
        try:
            return table_view(self._url, ()).snapshot
        except NoSuchTableError as error:
            raise OutcomeUnknownError(
                f"another driver is making the table at {shown_url(self._url)}",
                hint="run the command again; if no other offload is at work, remove the folder "
                "_delta_log there before",
            ) from error

    def _is_claimed(self, log: LogRecord, found: "Snapshot") -> bool:
        """Whether the table names an epoch of this log that no command has ended."""
        epoch = refusals.epoch_in(self._cluster.cluster_id, log, found)
        application = refusals.application_of(self._cluster.cluster_id, log, epoch)
        return bool(epoch) and found.transactions.get(application, -1) < FENCE_VERSION

    def _order(self, log: LogRecord, epoch: str, end: int, begin: int = 0) -> CopyOrder:
        return CopyOrder(
            *(self._cluster.uri, log.name, self._wanted.password, self._url),
            *(begin, end, refusals.application_of(self._cluster.cluster_id, log, epoch)),
            note=f"bkspark offload: offsets {begin} to {end - 1} of log {log.name}",
        )

    def _copy(self, copier: Copier, log: LogRecord, tier: Tier, intent: Intent) -> None:
        """Append the intent's rows, unless the table says that it has had them (step 2)."""
        found = own_table(self._cluster, log, tier).snapshot
        begin = max(intent.begin, log.first_offset)
        order = self._order(log, tier.epoch, intent.end, begin)
        if found.transactions.get(order.app_id, -1) < intent.end and begin < intent.end:
            places = require_columns(log.name, tier, found)
            copier.append(replace(order, table_url=tier.table_url, places=places))

    def _verify(
        self, log: LogRecord, tier: Tier, begin: int, end: int, step: Callable[[int], None]
    ) -> tuple[DigestsPage, TableView]:
        """Make the rows durable, and compare them; return their digests (steps 3 and 4)."""
        view = own_table(self._cluster, log, tier)
        require_durable(view, begin, end, tier.verified_version)
        rows = LogRows(self._cluster, log, self._wanted.password)
        try:
            page = verified(rows, view, begin, end, step)
        except TableChangedError as error:
            if not error.missing:
                raise
            app_id = self._order(log, tier.epoch, end).app_id
            why, hint = _why_missing(view.snapshot.transactions.get(app_id, -1), end)
            raise TableChangedError(
                f"{error.args[0]}: {why}", hint=hint.format(log.name), missing=error.missing
            ) from error
        return page, view

    def _record(
        self,
        log: LogRecord,
        tier: Tier,
        intent: Intent,
        page_of: Callable[[LogRecord, Tier, int, int], tuple[DigestsPage, TableView]],
    ) -> int:
        """Verify the intent's rows, and record them as a segment; return their bytes."""
        log = self._cluster.log(log.name).value.still_of(self._generation)
        offloading.tier_of(log, tier.epoch)  # ended meanwhile, if it is another one
        begin, end = max(intent.begin, log.first_offset), intent.end
        if begin >= end:  # all truncated meanwhile
            hidden = offloading.segment_of(log, end - 1, end, self._no_page(log), self._now_ms)
            self._changed(
                lambda record: offloading.finished(
                    record, tier.epoch, intent.attempt, hidden, tier.table
                )
            )
            return 0
        page, view = page_of(log, tier, begin, end)
        self._require_unchanged(log, tier, view)
        unnamed, now_ms = self._no_page(log), environment.now_ms()
        segment = offloading.segment_of(log, begin, end, unnamed, now_ms)
        found = replace(tier.table, verified=view.version, columns=view.columns)

        def recorded(record: LogRecord) -> LogRecord:
            given = (record, tier.epoch, intent.attempt)
            if offloading.finished(*given, segment, found) == record:
                return record  # another offload was faster
            # The page is made after the record was read that will name it.
            return offloading.finished(*given, with_page(self._cluster, log, segment, page), found)

        self._changed(recorded)
        return segment.length_bytes

    def _require_unchanged(self, log: LogRecord, tier: Tier, view: TableView) -> None:
        """Check that the table still has the rows of all segments, if it may have others.

        Raises:
            TableChangedError: rows are missing, there twice, or others.
        """
        if may_be_changed(view, tier.table.verified):
            require_segments(self._cluster, log, tier, view)

    def _look_again(self, log: LogRecord) -> None:
        """Record that the newest version of the table has all rows, after a look at it.

        Raises:
            TableChangedError: rows are missing, there twice, or others.
            MetadataVersionError: the tier was changed during each of several looks.
        """
        for _ in range(_LOOKS_MAX):
            try:
                self._record_look(log)
                return
            except MetadataVersionError:
                log = self._cluster.log(log.name).value.still_of(self._generation)
        raise MetadataVersionError(
            f"log {log.name!r} was changed {_LOOKS_MAX} times during a look at its table",
            hint="run the command again",
        )

    def _record_look(self, log: LogRecord) -> None:
        tier = log.tier
        if tier is None:
            return
        view = own_table(self._cluster, log, tier)
        if view.version == tier.table.verified:
            return
        self._require_unchanged(log, tier, view)

        def looked_at(record: LogRecord) -> LogRecord:
            if record.tier != tier:  # this look saw no row of a segment that is new
                raise MetadataVersionError(f"the tier of log {log.name!r} was changed meanwhile")
            return offloading.verified_again(record, tier.epoch, view.version)

        self._changed(looked_at)

    def _no_page(self, log: LogRecord) -> str:
        return layout.log_page_name(log.generation, environment.token())

    # --- parts ---------------------------------------------------------------------------------

    def _changed(self, change: Callable[[LogRecord], LogRecord]) -> LogRecord:
        """Change the record by compare-and-set, if it is of the same generation."""

        def changed(record: LogRecord | None) -> LogRecord:
            if record is None:
                raise MetadataVersionError(f"log {self._log.name!r} was deleted meanwhile")
            after = change(record.still_of(self._generation))
            return record if after == record else after.stamped(environment.now_ms())

        return self._cluster.logs.update(self._log.name, changed).value


def own_table(cluster: Cluster, log: LogRecord, tier: Tier) -> TableView:
    """Look at a log's table, newest version; it must be the very table.

    Raises:
        TableChangedError: another table is there.
    """
    return require_own(cluster, log, tier, table_view(tier.table_url, tier.columns))


def require_own(cluster: Cluster, log: LogRecord, tier: Tier, view: TableView) -> TableView:
    """Return the view with all columns of the log; raise if it is of another table.

    Raises:
        TableChangedError: another table is there.
        InvalidRequestError: the table belongs to another log, or does not keep the rows.
    """
    found = view.snapshot
    refusals.epoch_in(cluster.cluster_id, log, found)
    if found.table_id != tier.table_id:
        raise TableChangedError(
            f"the table of log {log.name!r} at {shown_url(tier.table_url)} is another table: "
            f"its id is {found.table_id}, not {tier.table_id}",
            hint="put the former table back",
        )
    refusals.require_table(log, found)
    return TableView(view.table, found, _columns_of(found, tier, log))


def require_columns(log_name: str, tier: Tier, snapshot: "Snapshot") -> dict[str, "Located"]:
    """Return where the log's columns are in the table, by the log's names.

    Raises:
        TableChangedError: the table does not have one of them any more.
    """
    from bkspark.table.conversion import DroppedColumnError, locate

    try:
        return {one.name: locate(one.name, one, snapshot.columns) for one in tier.columns}
    except DroppedColumnError as error:
        raise TableChangedError(
            f"column {str(error)!r} of log {log_name!r} was dropped from its table at "
            f"{shown_url(tier.table_url)}",
            hint="RESTORE the table to a version before; reads of other columns go on",
        ) from None


def _why_missing(transaction: int, end: int) -> tuple[str, str]:
    """Return why the table lacks rows that were appended, and what to do.

    Args:
        transaction: the last one of the epoch that the table has; -1 for none.
        end: the transaction of the append.
    """
    if transaction >= FENCE_VERSION:
        return (
            "another command ended this offload before they were committed",
            "run `bkspark offload {} --restart --table URL`, with a table that is new or empty",
        )
    if transaction < end:
        return (
            "their commit is not in the table: another driver may have overwritten it",
            "run this again, which appends them again",
        )
    return (
        "they were committed, and then removed by a RESTORE, an overwrite or a lost commit",
        "RESTORE the table to the version that had them, then run this again",
    )


def require_durable(view: TableView, begin: int, end: int, since: int) -> None:
    """Make the files of the rows ``[begin, end)`` durable, and the commits after version ``since``.

    Raises:
        OutcomeUnknownError: they may not be durable.
    """
    names = [file.path for file in view.snapshot.within(begin, end).files]
    names += view.table.log_names(after=since)
    try:
        sync_files(view.table.url, names)
    except OSError as error:
        raise OutcomeUnknownError(
            f"files of the table at {shown_url(view.table.url)} may not be durable: {error}",
            hint="run the command again",
        ) from error


def _steps(how: Execution, done: int, total: int) -> Callable[[int], None]:
    """Return what counts the offsets that were checked, after ``done`` others."""
    checked = 0

    def step(count: int) -> None:
        nonlocal checked
        checked += count
        how.progress(done + checked, total)

    return step


def _columns_of(snapshot: "Snapshot", tier: Tier, log: LogRecord) -> tuple[TierColumn, ...]:
    """Return which columns of the table are the log's: those known before, and new ones by name."""
    known = {one.name: one for one in tier.columns}
    names = [*PLACE_COLUMNS.names, *arrow_schema.decode(log.schema).names]
    for name in names:
        found = snapshot.columns.get(name)
        if name not in known and found is not None:
            known[name] = TierColumn(name, found.physical_name, found.type_text)
    return tuple(known.values())
