"""The maintenance commands, each declared once as a function."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from bkspark.admin.maintenance import Facts, Left, Report, no_progress
from bkspark.cluster import arguments
from bkspark.errors import InvalidRequestError
from bkspark.format import layout
from bkspark.protocol.bounds import (
    ABANDONED_AFTER_SECONDS,
    OFFLOAD_GRACE_SECONDS,
    OPEN_GRACE_SECONDS,
    SEGMENT_BYTES,
    TARGET_BYTES,
    THRESHOLD,
)
from bkspark.quantities import plural, seconds_of, size_of, timestamp
from bkspark.verbs import declaring
from bkspark.verbs.declaring import (
    COMPACTED,
    COPIES,
    DAMAGE,
    FREED,
    LEVELS,
    MOVED,
    RECOVERED,
    STEPS,
    CommandRun,
    Ledgers,
    LogName,
    Logs,
    OpenGrace,
    Option,
    Rate,
    ShellOutput,
    Table,
    time_option,
    verb,
)

# Each command imports its work when it runs: help and completion need declarations only.
if TYPE_CHECKING:
    from bkspark.admin import log_upkeep, recovering
    from bkspark.admin.survey import Survey
    from bkspark.cluster.cluster import Cluster
    from bkspark.cluster.password import Password
    from bkspark.log.truncation import TruncationPlan

# --- upkeep --------------------------------------------------------------------------------------
# Commands to run on a schedule.


@verb("ledgers", ShellOutput(Table("copies", COPIES)))
def audit(cluster: "Survey", run: CommandRun, *, logs: Logs = (), ledgers: Ledgers = ()) -> Report:
    """Find missing copies, and ledgers waiting for recovery.

    The report names ledgers, bookies and reasons. An audit reads records and examines files, but
    reads no rows. An audit of all ledgers also finds files for the next `collect` to free. Exit
    status 1 if problems are found.

    Raises:
        NoSuchLedgerError: no such log or ledger.
        OutcomeUnknownError: the metadata store or Spark gave no definite answer.
    """
    from bkspark.admin.auditing import audit as auditing
    from bkspark.admin.collecting.collection import nominate

    told = partial(nominate, cluster, run.runner)
    return auditing.audit(cluster, run, logs=logs, ledgers=ledgers, nominate=told)


def _of_tables(report: Report) -> Iterator[str]:
    """What becomes of ledgers whose rows a table has."""
    for row in report.details.get("tables", ()):
        what = "deleted" if row["step"] == "delete" else "kept until a second look at the table"
        verb = "are" if report.done else "would be"
        yield f"{_offsets(row)}: found in the table; their ledgers {verb} {what}"
    for row in report.details.get("tables_later", ()):
        what = "second" if row["step"] == "delete" else "first"
        due = timestamp(row["due_ms"])
        when = "later" if due is None else f"due at {due:%Y-%m-%d %H:%M}Z"
        yield f"{_offsets(row)}: the {what} look at the table is {when}"


def _offsets(row: Facts) -> str:
    return f"log {row['log']}, offsets {row['first_offset']} to {row['end_offset'] - 1}"


@verb("ledgers", ShellOutput(Table("ledgers", FREED), notes_done=_of_tables), has_lease=True)
def collect(
    cluster: "Cluster",
    run: CommandRun,
    *,
    abandoned_after: Annotated[
        float,
        time_option(
            "Count an unfinished write as abandoned after this many seconds; on a shell also "
            "7d. A longer write fails at commit."
        ),
    ] = ABANDONED_AFTER_SECONDS,
    offload_grace: Annotated[
        float,
        time_option(
            "Delete offloaded ledgers after two looks at their table: the first as long after the "
            "offload, the second as long after the first, but at most a day."
        ),
    ] = OFFLOAD_GRACE_SECONDS,
    full: Annotated[
        bool, Option("Look at all ledgers and all files of bookies, as audits do for collections.")
    ] = False,
) -> Report:
    """Free the space of deleted and unneeded data.

    Frees deleted ledgers and logs; ledgers dropped by retention, truncation and overwriting;
    aborted and killed writes; and, of closed ledgers, copies on former members and files no record
    names. The command may be killed, repeated, and run beside any other work. Files on an absent
    bookie are freed once the bookie is back. Exit status 1 if files remain.

    Raises:
        OutcomeUnknownError: the metadata store or Spark gave no definite answer; repeat the
            command.
    """
    from bkspark.admin.collecting import collection as collecting

    return collecting.collect(
        cluster, run, abandoned_after=abandoned_after, offload_grace=offload_grace, full=full
    )


def _recovered_first(plan: Facts) -> list[str]:
    count = plan.get("recover", {}).get("ledgers", 0)
    return [f"repair: {plural(count, 'ledger')} would be recovered first"] if count else []


@verb(
    "copies",
    ShellOutput(Table("repaired", STEPS), (Table("steps", STEPS),), _recovered_first),
    has_lease=True,
    can_watch=True,
)
def repair(
    cluster: "Survey",
    run: CommandRun,
    *,
    logs: Logs = (),
    ledgers: Ledgers = (),
    open_grace: OpenGrace = OPEN_GRACE_SECONDS,
    lost_after: Annotated[
        float | None,
        time_option(
            "Also replace bookies silent for this many seconds; on a shell also 1h. Default: "
            "never.",
            declaring.some_seconds,
        ),
    ] = None,
    max_bytes_per_second: Rate = None,
    password: "Password",
) -> Report:
    """Make missing copies of closed ledgers, worst first.

    A copy goes to the same bookie if it answers, otherwise to another bookie, which takes its
    place. A repair of all ledgers first closes ledgers without a writer, as `recover --all` does.
    With --watch the command repeats until stopped, with one line a round. Exit status 1 if problems
    remain; the report gives the reasons.

    Raises:
        NoSuchLedgerError: no such log or ledger.
        CorruptDataError: the record of a lost bookie cannot be read.
        OutcomeUnknownError: the metadata store or Spark gave no definite answer.
    """
    from bkspark.admin import lease, recovering
    from bkspark.admin.recovering import recover_and_repair
    from bkspark.admin.repairing import repair_command as repairing
    from bkspark.cluster.cluster import Cluster

    wanted = repairing.RepairRequest(logs, ledgers, password, max_bytes_per_second, lost_after)
    with Cluster(cluster.uri, cluster_id=cluster.cluster_id) as strict:
        work = partial(repairing.repair, strict, cluster, wanted, run)
        if not wanted.is_of_all:
            return work()
        gone = recovering.RecoverRequest(open_grace=open_grace, password=password)
        first = _recovery(cluster, gone, replace(run, progress=no_progress))
        recover = partial(lease.alone, cluster, recovering.VERB, first, is_wanted=run.takes_lease)
        return recover_and_repair(recover, work)


@verb("ledgers", ShellOutput(Table("damage", DAMAGE)), has_lease=True)
def scrub(
    cluster: "Survey",
    run: CommandRun,
    *,
    logs: Logs = (),
    ledgers: Ledgers = (),
    sample: Annotated[
        float, Option("Read this fraction of the files, chosen at random.", "FRACTION")
    ] = 1.0,
    max_bytes_per_second: Rate = None,
    password: "Password",
) -> Report:
    """Read every copy and check every byte.

    The report names damaged copies, and the scrub marks them: an audit counts a marked copy as
    missing until a repair replaces the copy. Without a ledger's password only checks without a
    password are made. The scrub also reads the tables of logs. Exit status 1 if a copy is damaged
    or unreadable, or if a table does not have the rows.

    Raises:
        InvalidRequestError: a number is out of range, or the password cannot be read.
        NoSuchLedgerError: no such log or ledger.
        OutcomeUnknownError: the metadata store or Spark gave no definite answer.
    """
    from bkspark.admin.scrubbing import scrub as scrubbing

    wanted = scrubbing.ScrubRequest(password, sample, max_bytes_per_second)
    return scrubbing.scrub(cluster, wanted, run, logs=logs, ledgers=ledgers)


@verb("ledgers", ShellOutput(Table("recovered", RECOVERED)), all_of="ledgers", has_lease=True)
def recover(
    cluster: "Survey",
    run: CommandRun,
    *,
    ledgers: Annotated[
        Collection[int],
        Option(
            "Recover these ledgers, even if a writer is active.", "[ID]...", "", check=declaring.ids
        ),
    ] = (),
    open_grace: OpenGrace = OPEN_GRACE_SECONDS,
    password: "Password",
) -> Report:
    """Close many ledgers in one run.

    No acknowledged entry is lost. --all selects ledgers waiting for a recovery, and open ledgers
    seen unchanged for --open-grace; sightings are stored from run to run. An undecidable ledger is
    left, with the reason, and delays no other ledger. Exit status 1 if ledgers are left. The ledger
    at the end of an unbounded log is OPEN again afterwards; --all leaves such a ledger alone if no
    entry was written since the last recovery.

    Raises:
        InvalidRequestError: a number is out of range.
        NoSuchLedgerError: no such ledger.
        OutcomeUnknownError: the metadata store or Spark gave no definite answer.
    """
    from bkspark.admin import recovering

    return _recovery(cluster, recovering.RecoverRequest(ledgers, open_grace, password), run)()


def _recovery(
    cluster: "Survey", wanted: "recovering.RecoverRequest", run: CommandRun
) -> Callable[[], Report]:
    from bkspark.admin import recovering

    recover = None
    if run.spark is not None:
        from bkspark.spark.actions import recover_ledgers

        recover = partial(recover_ledgers, run.spark.sparkContext)
    return partial(recovering.recover_many, cluster, wanted, run, recover=recover)


# --- logs ----------------------------------------------------------------------------------------
# Commands on a single log.


@verb("ledgers", ShellOutput(Table("compacted", COMPACTED)))
def compact(
    cluster: "Cluster",
    run: CommandRun,
    *,
    log: LogName,
    target_bytes: Annotated[
        int,
        Option(
            "Make ledgers of this many bytes, for example 512MB; merge those of up to half.",
            "SIZE",
            parse=lambda name: size_of(name, least=1),
            check=lambda name, given: arguments.whole_number(name, given, least=1),
        ),
    ] = TARGET_BYTES,
    max_bytes_per_second: Rate = None,
    password: "Password",
) -> Report:
    """Merge a log's small ledgers into large ledgers.

    Offsets and their rows stay; _ledger_id and _entry_id name the new ledgers. Reads and writes
    continue undisturbed. The command may be killed and repeated. `bkspark collect` frees the old
    ledgers a day later, to let reads finish. Exit status 1 if a run of ledgers remains unmerged;
    the report gives the reason.

    Raises:
        InvalidRequestError: a number is out of range.
        NoSuchLedgerError: no such log.
        UnauthorizedError: the log's password is missing or wrong.
        OutcomeUnknownError: the metadata store or Spark gave no definite answer; repeat the
            command.
    """
    from bkspark.admin import log_upkeep

    compact_all = None
    if run.spark is not None:
        from bkspark.spark.actions import compact_runs

        compact_all = partial(compact_runs, run.spark.sparkContext)
    wanted = log_upkeep.CompactRequest(target_bytes, password, max_bytes_per_second)
    return log_upkeep.compact(cluster, layout.log_name(log), wanted, run, compact_all=compact_all)


def _offloaded(report: Report) -> str:
    plan, done = report.plan, report.done
    if not plan:  # another run has the lease
        return "; ".join(f"{left.reason}; {left.hint}" for left in report.left)
    if "moved_from" in plan:
        return _moved_table(report)
    if "is_forgotten" in plan:
        rest = "forgot its table" if plan["is_forgotten"] else "copies no more; its table stays"
        return f"log {plan['log']} {rest}"
    if "windows" in plan:
        what = f"{plan['windows']:,} changed windows and {plan['missing']:,} missing offsets"
        return f"{'accepted' if done else 'would accept'} {what} in the table of log {plan['log']}"
    if done and done["entries"]:
        rows = f"{done['entries']:,} rows of log {plan['log']}"
        return f"copied and verified {rows} in {plan['table']}"
    if not plan["entries"]:
        return f"no row of log {plan['log']} is due{_of_open_ledger(plan)}"
    offsets = f"offsets {plan['first_offset']} to {plan['end_offset'] - 1}"
    return f"would copy {plan['entries']:,} rows to {plan['table']}: {offsets}"


def _moved_table(report: Report) -> str:
    plan, done = report.plan, report.done
    where = f"in the table at {plan['table']}"
    if not done:
        return f"would look for all rows of log {plan['log']} {where}"
    found = f"found {done['entries']:,} rows of log {plan['log']} {where}, which is its table now"
    return f"{found}; the one at {plan['moved_from']} is not needed any more"


def _of_open_ledger(plan: Facts) -> str:
    ledger_id = plan["open_ledger"]
    if ledger_id is None:
        return ""
    return (
        f"; ledger {ledger_id} is open, and is copied after its writer has closed it (if the "
        f"writer is gone: `bkspark ledger recover {ledger_id}`)"
    )


_TableUrl = Annotated[
    str,
    Option(
        "Where the Delta table is or will be; needed the first time. Another address later says "
        "that the table was moved there.",
        "URL",
    ),
]
_Restart = Annotated[
    bool, Option("Forget the table, which no read needs yet, and begin with another one.")
]
_Stop = Annotated[bool, Option("Copy no more; forget the table if all rows are in ledgers.")]
_AcceptChanges = Annotated[
    bool, Option("Take the rows as the table has them: changes and deletions are meant.")
]
_AcceptSingleCopy = Annotated[
    bool, Option("Accept a table on a disk, which has one copy of each row.")
]
_AcceptUnprotected = Annotated[
    bool, Option("Accept that a table has no digests that need the log's password.")
]
_OlderThan = Annotated[
    float | None,
    time_option(
        "Copy only ledgers closed at least this many seconds ago; on a shell also 7d. Default: "
        "all closed ledgers.",
        check=declaring.some_seconds,
    ),
]
_KeepBytes = Annotated[
    int,
    Option(
        "Do not copy the newest rows of this many bytes, for example 10GB.",
        "SIZE",
        parse=size_of,
        check=lambda name, given: arguments.whole_number(name, given),
    ),
]
_MeanRate = Annotated[
    float | None,
    Option(
        "Copy at most this many bytes per second on average, for example 50MB: the command waits "
        "between two commits. Default: unlimited.",
        "SIZE",
        parse=size_of,
        check=declaring.rate,
    ),
]
_SegmentBytes = Annotated[
    int,
    Option(
        "Copy this many bytes by one commit of the table, for example 8GB.",
        "SIZE",
        parse=lambda name: size_of(name, least=1),
        check=lambda name, given: arguments.whole_number(name, given, least=1),
    ),
]


@verb("rows", ShellOutput(said=_offloaded), lease_of="log")
def offload(
    cluster: "Cluster",
    run: CommandRun,
    *,
    log: LogName,
    table: _TableUrl = "",
    older_than: _OlderThan = None,
    keep_bytes: _KeepBytes = 0,
    segment_bytes: _SegmentBytes = SEGMENT_BYTES,
    restart: _Restart = False,
    stop: _Stop = False,
    accept_changes: _AcceptChanges = False,
    accept_single_copy: _AcceptSingleCopy = False,
    accept_unprotected: _AcceptUnprotected = False,
    max_bytes_per_second: _MeanRate = None,
    password: "Password",
) -> Report:
    """Copy old rows to a Delta table, and verify them.

    Each row is read back from the table and compared. The ledgers stay; `collect` deletes them
    after two more looks at the table, a day apart. The command needs Spark with Delta. It may be
    killed and repeated: the next run continues with the same offsets. Only closed ledgers are
    copied.

    Raises:
        InvalidRequestError: the log, the place or the table cannot keep the rows.
        NoSuchLedgerError: no such log.
        TableChangedError: the table does not have the rows that were written to it.
        OutcomeUnknownError: the metadata store, Spark or the table gave no definite answer.
        UnauthorizedError: the log's password is missing or wrong.
    """
    from bkspark.admin.offloading.ending import Ending
    from bkspark.admin.offloading.offload import OffloadRequest
    from bkspark.admin.offloading.request import carry_out

    wanted = OffloadRequest(
        *(table, older_than, keep_bytes, segment_bytes),
        *(accept_single_copy, accept_unprotected, password, max_bytes_per_second),
    )
    end = Ending.of(restart=restart, stop=stop, accept_changes=accept_changes)

    def copier(table_urls: Sequence[str]) -> Any:
        from bkspark.spark.offload import copier_of

        return copier_of(run.spark, table_urls)

    return carry_out(cluster, layout.log_name(log), wanted, end, copier, run)


def truncated(row: Facts) -> str:
    """Describe a finished truncation in one line for people."""
    ledgers = plural(len(row["deleted"]), "ledger")
    text = f"log {row['log']} begins at offset {row['first_offset']}; deleted {ledgers}"
    if row["left"]:
        again = f"try `bkspark log retain {row['log']}`"
        text += f", {len(row['left']):,} more could not be deleted now: {again}"
    return text


def _retained(report: Report) -> str:
    if report.done:
        return truncated(report.details["logs"][0])
    return f"would delete {losing(report.plan)}"


@verb(
    "",
    ShellOutput(
        said=_retained,
        document=lambda report: report.details["logs"][0] if report.done else report.plan,
    ),
    group="log",
    destroys="entries are deleted for ever",
)
def retain(
    cluster: "Cluster",
    run: CommandRun,
    *,
    log: LogName,
    max_bytes: Annotated[
        int | None,
        Option(
            "From now on keep at least this many bytes, for example 10GB.", "SIZE", parse=size_of
        ),
    ] = None,
    max_seconds: Annotated[
        float | None,
        Option(
            "From now on keep ledgers this many seconds after their closing; on a shell also "
            "7d. The clocks of the closing and the truncating process count: allow for their "
            "difference.",
            "TIME",
            parse=seconds_of,
        ),
    ] = None,
    forever: Annotated[bool, Option("From now on keep all entries.")] = False,
    ignore_cursors: Annotated[
        bool, Option("Also delete entries that a cursor has not read yet.")
    ] = False,
) -> Report:
    """Delete old ledgers of a log by the log's settings.

    Options change the settings first. The command asks before setting a limit or deleting an entry.

    Raises:
        InvalidRequestError: a limit is no number, or contradicts another.
        NoSuchLedgerError: no such log.
        OutcomeUnknownError: the metadata store gave no definite answer; repeat the command.
    """
    from bkspark.admin import log_upkeep

    wanted = log_upkeep.RetainRequest(
        layout.log_name(log), max_bytes, max_seconds, forever, not ignore_cursors
    )
    if forever and wanted.is_limited:
        raise InvalidRequestError(
            "forever contradicts max_bytes and max_seconds", hint="leave one of them out"
        )

    ask = partial(_ask_to_retain, run, wanted)
    return log_upkeep.retain(cluster, wanted, dry_run=run.dry_run, consent=ask)


def _ask_to_retain(
    run: CommandRun, wanted: "log_upkeep.RetainRequest", plan: "TruncationPlan"
) -> None:
    from bkspark.admin import log_upkeep

    if run.ask is not None and (wanted.is_limited or plan.entry_count):
        limits = f"From now on keep {_limits(wanted)} of log {wanted.log}, and delete"
        what = limits if wanted.is_limited else "Delete"
        run.ask(f"{what} {losing(log_upkeep.facts_of(plan))}?")


def _limits(wanted: "log_upkeep.RetainRequest") -> str:
    """Describe the wanted limits in words."""
    from rich.filesize import decimal

    said = [] if wanted.max_bytes is None else [f"{decimal(wanted.max_bytes)}"]
    said += [] if wanted.max_seconds is None else [f"{wanted.max_seconds:,g} s"]
    return " and ".join(said)


def losing(plan: Facts) -> str:
    """Describe a truncation's deletions: rows, bytes, ledgers, offsets and times."""
    if not plan["entries"]:
        return f"no entry of log {plan['log']} now"
    from rich.filesize import decimal

    entries = f"{plan['entries']:,} {'entry' if plan['entries'] == 1 else 'entries'}"
    offsets = f"offsets {plan['first_offset']} to {plan['before_offset'] - 1}"
    times = f", closed {plan['oldest']} to {plan['newest']}" if plan["oldest"] else ""
    whole = plural(plan["ledgers"], "whole ledger")
    size = decimal(plan["bytes"])
    return f"{entries} of log {plan['log']} ({size}, {offsets}, {whole}{times})"


# --- places --------------------------------------------------------------------------------------
# Commands moving places of ledgers to other bookies.


_SHOWN_MAX = 5


def _fraction(name: str, given: float) -> Any:
    hint = "give a fraction of the mean, for example 0.1"
    arguments.require_number(name, given, hint=hint)
    return given


@verb(
    "places",
    ShellOutput(Table("moved", MOVED), (Table("bookies", LEVELS), Table("steps", MOVED))),
    has_lease=True,
)
def rebalance(
    cluster: "Cluster",
    run: CommandRun,
    *,
    threshold: Annotated[
        float,
        Option(
            "Allow bookies this distance from the mean, as a fraction of the mean.",
            "FRACTION",
            check=_fraction,
        ),
    ] = THRESHOLD,
    max_bytes_per_second: Rate = None,
    password: "Password",
) -> Report:
    """Even out the data on the bookies.

    Useful after adding bookies. Copies of closed ledgers move, from the fullest bookie first, until
    no bookie is farther from the mean than the threshold, or no move helps. The measure is bytes of
    ledgers as reported by bookies, relative to disk size if all disk sizes are known. Exit status 1
    if problems remain.

    Raises:
        InvalidRequestError: a number is out of range.
        OutcomeUnknownError: the metadata store or Spark gave no definite answer.
    """
    from bkspark.admin import balancing

    wanted = balancing.RebalanceRequest(threshold, password, max_bytes_per_second)
    return balancing.rebalance(cluster, wanted, run)


def _in_the_way(plan: Facts) -> Iterator[str]:
    for left in plan["blocked"]:
        yield f"obstacle: {left['subject']}: {left['reason']} ({left['hint']})"


@verb(
    "places",
    ShellOutput(Table("moved", STEPS), (Table("steps", STEPS),), _in_the_way),
    group="bookie",
    destroys="bookies are removed for ever",
)
def decommission(
    cluster: "Cluster",
    run: CommandRun,
    *,
    bookies: Annotated[Collection[str], Option("Empty and remove these bookies.", "ID...", "")],
    force: Annotated[
        bool, Option("Remove a bookie even if ledgers name it, if other bookies have all copies.")
    ] = False,
    max_bytes_per_second: Rate = None,
    password: "Password",
) -> Report:
    """Empty bookies, and remove them from the cluster.

    Nothing new is placed on the bookies, and their copies of closed ledgers move to other bookies.
    A bookie no ledger names any more is removed, for ever. The report names obstacles, and a
    repeated command continues; `bkspark bookie readonly ID --off` cancels before the removal. Exit
    status 1 if obstacles remain.

    Raises:
        InvalidRequestError: no bookie is named, or a named bookie never existed.
        OutcomeUnknownError: the metadata store or Spark gave no definite answer.
    """
    from bkspark.admin import draining

    def work(*, force: bool, how: CommandRun = run) -> Report:
        wanted = draining.DecommissionRequest(bookies, password, max_bytes_per_second, force)
        return draining.decommission(cluster, wanted, how)

    if run.ask is None or run.dry_run:
        return work(force=force)
    plan = work(force=False, how=replace(run, dry_run=True)).plan
    names, places = ", ".join(plan["bookies"]), plural(plan["places"], "place")
    if names:
        run.ask(f"Move {places} of {names} to other bookies, and remove them for ever?")
    report = work(force=False)
    if not (report.left and force):
        return report
    run.ask(f"Remove {names} although this is left: {_named(report.left)}?")
    return work(force=True)


def _named(left: Sequence[Left]) -> str:
    more = f" and {len(left) - _SHOWN_MAX:,} more" if len(left) > _SHOWN_MAX else ""
    return ", ".join(item.subject for item in left[:_SHOWN_MAX]) + more
