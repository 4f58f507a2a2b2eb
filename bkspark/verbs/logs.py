"""Commands on a single log."""

from functools import partial
from typing import Annotated, Any

from rich.filesize import decimal

from bkspark.admin import log_upkeep
from bkspark.admin import log_upkeep as compacting
from bkspark.admin.maintenance import Facts, Report
from bkspark.cluster import arguments
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import InvalidRequestError
from bkspark.format import layout
from bkspark.log.truncation import TruncationPlan
from bkspark.protocol.log.compaction import TARGET_BYTES
from bkspark.quantities import plural, seconds_of, size_of
from bkspark.verbs.declaring import CommandRun, Option, ShellOutput, Table, verb
from bkspark.verbs.shared import LogName, Rate
from bkspark.verbs.tables import COMPACTED


@verb("ledgers", ShellOutput(Table("compacted", COMPACTED)))
def compact(
    cluster: Cluster,
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
    password: Password,
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
    how: dict[str, Any] = {"dry_run": run.dry_run, "progress": run.progress}
    if run.spark is not None:
        from bkspark.spark.actions import compact_runs

        how["compact_all"] = partial(compact_runs, run.spark.sparkContext)
    wanted = compacting.CompactRequest(target_bytes, password, max_bytes_per_second)
    return compacting.compact(cluster, layout.log_name(log), wanted, **how)


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
    cluster: Cluster,
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
    wanted = log_upkeep.RetainRequest(
        layout.log_name(log), max_bytes, max_seconds, forever, not ignore_cursors
    )
    if forever and wanted.is_limited:
        raise InvalidRequestError(
            "forever contradicts max_bytes and max_seconds", hint="leave one of them out"
        )

    def consent(plan: TruncationPlan) -> None:
        if run.ask is not None and (wanted.is_limited or plan.entry_count):
            limits = f"From now on keep {_limits(wanted)} of log {log}, and delete"
            what = limits if wanted.is_limited else "Delete"
            run.ask(f"{what} {losing(log_upkeep.facts_of(plan))}?")

    return log_upkeep.retain(cluster, wanted, dry_run=run.dry_run, consent=consent)


def _limits(wanted: log_upkeep.RetainRequest) -> str:
    """Describe the wanted limits in words."""
    said = [] if wanted.max_bytes is None else [f"{decimal(wanted.max_bytes)}"]
    said += [] if wanted.max_seconds is None else [f"{wanted.max_seconds:,g} s"]
    return " and ".join(said)


def losing(plan: Facts) -> str:
    """Describe a truncation's deletions: rows, bytes, ledgers, offsets and times."""
    if not plan["entries"]:
        return f"no entry of log {plan['log']} now"
    entries = f"{plan['entries']:,} {'entry' if plan['entries'] == 1 else 'entries'}"
    offsets = f"offsets {plan['first_offset']} to {plan['before_offset'] - 1}"
    times = f", closed {plan['oldest']} to {plan['newest']}" if plan["oldest"] else ""
    whole = plural(plan["ledgers"], "whole ledger")
    size = decimal(plan["bytes"])
    return f"{entries} of log {plan['log']} ({size}, {offsets}, {whole}{times})"
