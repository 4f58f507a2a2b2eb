"""Looking after a cluster. ``tests/style/admin_stub.py`` makes this file of ``bkspark.verbs``."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from pyspark.sql import SparkSession

from bkspark.admin.maintenance import Report

Calls = Mapping[str, Callable[..., Any]]

def show_calls_of(giver: Callable[[], Calls]) -> None: ...
def audit(
    metadata_uri: str = "",
    *,
    logs: Collection[str] = (),
    ledgers: Collection[int] = (),
    dry_run: bool = False,
    spark: SparkSession | None = None,
    tell: Callable[[str], None] | None = None,
    progress: Callable[[int, int], None] = ...,
) -> Report:
    """Find missing copies, and ledgers waiting for recovery.

    The report names ledgers, bookies and reasons. An audit reads records and examines files, but
    reads no rows. An audit of all ledgers also finds files for the next `collect` to free. Exit
    status 1 if problems are found.

    ``bkspark.verbs`` describes the arguments shared by all commands.

    Args:
        logs: Work on this log only; may be repeated.
        ledgers: Work on this ledger only; may be repeated.
        dry_run: Print the plan; change nothing.

    Raises:
        NoSuchLedgerError: no such log or ledger.
        OutcomeUnknownError: the metadata store or Spark gave no definite answer.
    """

def collect(
    metadata_uri: str = "",
    *,
    abandoned_after: float = 604800.0,
    offload_grace: float = 86400.0,
    full: bool = False,
    dry_run: bool = False,
    spark: SparkSession | None = None,
    tell: Callable[[str], None] | None = None,
    progress: Callable[[int, int], None] = ...,
    no_lease: bool = False,
) -> Report:
    """Free the space of deleted and unneeded data.

    Frees deleted ledgers and logs; ledgers dropped by retention, truncation and overwriting;
    aborted and killed writes; and, of closed ledgers, copies on former members and files no record
    names. The command may be killed, repeated, and run beside any other work. Files on an absent
    bookie are freed once the bookie is back. Exit status 1 if files remain.

    ``bkspark.verbs`` describes the arguments shared by all commands.

    Args:
        abandoned_after: Count an unfinished write as abandoned after this many seconds; on a
            shell also 7d. A longer write fails at commit.
        offload_grace: Delete offloaded ledgers after two looks at their table: the first as
            long after the offload, the second as long after the first, but at most a day.
        full: Look at all ledgers and all files of bookies, as audits do for collections.
        dry_run: Print the plan; change nothing.
        no_lease: Run even if another run of this command is active.

    Raises:
        OutcomeUnknownError: the metadata store or Spark gave no definite answer; repeat the
            command.
    """

def compact(
    metadata_uri: str = "",
    *,
    log: str,
    target_bytes: int = 67108864,
    max_bytes_per_second: float | None = None,
    dry_run: bool = False,
    password: str = "",
    password_file: str = "",
    password_env: str = "",
    spark: SparkSession | None = None,
    tell: Callable[[str], None] | None = None,
    progress: Callable[[int, int], None] = ...,
) -> Report:
    """Merge a log's small ledgers into large ledgers.

    Offsets and their rows stay; _ledger_id and _entry_id name the new ledgers. Reads and writes
    continue undisturbed. The command may be killed and repeated. `bkspark collect` frees the old
    ledgers a day later, to let reads finish. Exit status 1 if a run of ledgers remains unmerged;
    the report gives the reason.

    ``bkspark.verbs`` describes the arguments shared by all commands.

    Args:
        log: Name of the log.
        target_bytes: Make ledgers of this many bytes, for example 512MB; merge those of up to
            half.
        max_bytes_per_second: Read from and write to each bookie at most this many bytes per
            second, for example 50MB; default: unlimited.
        dry_run: Print the plan; change nothing.
        password_file: Read the password from this file.
        password_env: Read the password from this environment variable.

    Raises:
        InvalidRequestError: a number is out of range.
        NoSuchLedgerError: no such log.
        UnauthorizedError: the log's password is missing or wrong.
        OutcomeUnknownError: the metadata store or Spark gave no definite answer; repeat the
            command.
    """

def decommission(
    metadata_uri: str = "",
    *,
    bookies: Collection[str],
    force: bool = False,
    max_bytes_per_second: float | None = None,
    dry_run: bool = False,
    password: str = "",
    password_file: str = "",
    password_env: str = "",
    spark: SparkSession | None = None,
    tell: Callable[[str], None] | None = None,
    progress: Callable[[int, int], None] = ...,
) -> Report:
    """Empty bookies, and remove them from the cluster.

    Nothing new is placed on the bookies, and their copies of closed ledgers move to other bookies.
    A bookie no ledger names any more is removed, for ever. The report names obstacles, and a
    repeated command continues; `bkspark bookie readonly ID --off` cancels before the removal. Exit
    status 1 if obstacles remain.

    ``bkspark.verbs`` describes the arguments shared by all commands.

    Args:
        bookies: Empty and remove these bookies.
        force: Remove a bookie even if ledgers name it, if other bookies have all copies.
        max_bytes_per_second: Read from and write to each bookie at most this many bytes per
            second, for example 50MB; default: unlimited.
        dry_run: Print the plan; change nothing.
        password_file: Read the password from this file.
        password_env: Read the password from this environment variable.

    Raises:
        InvalidRequestError: no bookie is named, or a named bookie never existed.
        OutcomeUnknownError: the metadata store or Spark gave no definite answer.
    """

def offload(
    metadata_uri: str = "",
    *,
    log: str,
    table: str = "",
    older_than: float | None = None,
    keep_bytes: int = 0,
    segment_bytes: int = 8589934592,
    restart: bool = False,
    stop: bool = False,
    accept_changes: bool = False,
    accept_single_copy: bool = False,
    accept_unprotected: bool = False,
    max_bytes_per_second: float | None = None,
    dry_run: bool = False,
    password: str = "",
    password_file: str = "",
    password_env: str = "",
    spark: SparkSession | None = None,
    tell: Callable[[str], None] | None = None,
    progress: Callable[[int, int], None] = ...,
    no_lease: bool = False,
) -> Report:
    """Copy old rows to a Delta table, and verify them.

    Each row is read back from the table and compared. The ledgers stay; `collect` deletes them
    after two more looks at the table, a day apart. The command needs Spark with Delta. It may be
    killed and repeated: the next run continues with the same offsets. Only closed ledgers are
    copied.

    ``bkspark.verbs`` describes the arguments shared by all commands.

    Args:
        log: Name of the log.
        table: Where the Delta table is or will be; needed the first time. Another address later
            says that the table was moved there.
        older_than: Copy only ledgers closed at least this many seconds ago; on a shell also 7d.
            Default: all closed ledgers.
        keep_bytes: Do not copy the newest rows of this many bytes, for example 10GB.
        segment_bytes: Copy this many bytes by one commit of the table, for example 8GB.
        restart: Forget the table, which no read needs yet, and begin with another one.
        stop: Copy no more; forget the table if all rows are in ledgers.
        accept_changes: Take the rows as the table has them: changes and deletions are meant.
        accept_single_copy: Accept a table on a disk, which has one copy of each row.
        accept_unprotected: Accept that a table has no digests that need the log's password.
        max_bytes_per_second: Copy at most this many bytes per second on average, for example
            50MB: the command waits between two commits. Default: unlimited.
        dry_run: Print the plan; change nothing.
        password_file: Read the password from this file.
        password_env: Read the password from this environment variable.
        no_lease: Run even if another run of this command is active.

    Raises:
        InvalidRequestError: the log, the place or the table cannot keep the rows.
        NoSuchLedgerError: no such log.
        TableChangedError: the table does not have the rows that were written to it.
        OutcomeUnknownError: the metadata store, Spark or the table gave no definite answer.
        UnauthorizedError: the log's password is missing or wrong.
    """

def rebalance(
    metadata_uri: str = "",
    *,
    threshold: float = 0.1,
    max_bytes_per_second: float | None = None,
    dry_run: bool = False,
    password: str = "",
    password_file: str = "",
    password_env: str = "",
    spark: SparkSession | None = None,
    tell: Callable[[str], None] | None = None,
    progress: Callable[[int, int], None] = ...,
    no_lease: bool = False,
) -> Report:
    """Even out the data on the bookies.

    Useful after adding bookies. Copies of closed ledgers move, from the fullest bookie first, until
    no bookie is farther from the mean than the threshold, or no move helps. The measure is bytes of
    ledgers as reported by bookies, relative to disk size if all disk sizes are known. Exit status 1
    if problems remain.

    ``bkspark.verbs`` describes the arguments shared by all commands.

    Args:
        threshold: Allow bookies this distance from the mean, as a fraction of the mean.
        max_bytes_per_second: Read from and write to each bookie at most this many bytes per
            second, for example 50MB; default: unlimited.
        dry_run: Print the plan; change nothing.
        password_file: Read the password from this file.
        password_env: Read the password from this environment variable.
        no_lease: Run even if another run of this command is active.

    Raises:
        InvalidRequestError: a number is out of range.
        OutcomeUnknownError: the metadata store or Spark gave no definite answer.
    """

def recover(
    metadata_uri: str = "",
    *,
    ledgers: Collection[int] = (),
    open_grace: float = 3600.0,
    dry_run: bool = False,
    password: str = "",
    password_file: str = "",
    password_env: str = "",
    spark: SparkSession | None = None,
    tell: Callable[[str], None] | None = None,
    progress: Callable[[int, int], None] = ...,
    no_lease: bool = False,
) -> Report:
    """Close many ledgers in one run.

    No acknowledged entry is lost. --all selects ledgers waiting for a recovery, and open ledgers
    seen unchanged for --open-grace; sightings are stored from run to run. An undecidable ledger is
    left, with the reason, and delays no other ledger. Exit status 1 if ledgers are left. The ledger
    at the end of an unbounded log is OPEN again afterwards; --all leaves such a ledger alone if no
    entry was written since the last recovery.

    ``bkspark.verbs`` describes the arguments shared by all commands.

    Args:
        ledgers: Recover these ledgers, even if a writer is active.
        open_grace: Recover an open ledger after this many seconds without a change; on a shell
            also 1h.
        dry_run: Print the plan; change nothing.
        password_file: Read the password from this file.
        password_env: Read the password from this environment variable.
        no_lease: Run even if another run of this command is active.

    Raises:
        InvalidRequestError: a number is out of range.
        NoSuchLedgerError: no such ledger.
        OutcomeUnknownError: the metadata store or Spark gave no definite answer.
    """

def repair(
    metadata_uri: str = "",
    *,
    logs: Collection[str] = (),
    ledgers: Collection[int] = (),
    open_grace: float = 3600.0,
    lost_after: float | None = None,
    max_bytes_per_second: float | None = None,
    dry_run: bool = False,
    password: str = "",
    password_file: str = "",
    password_env: str = "",
    spark: SparkSession | None = None,
    tell: Callable[[str], None] | None = None,
    progress: Callable[[int, int], None] = ...,
    no_lease: bool = False,
) -> Report:
    """Make missing copies of closed ledgers, worst first.

    A copy goes to the same bookie if it answers, otherwise to another bookie, which takes its
    place. A repair of all ledgers first closes ledgers without a writer, as `recover --all` does.
    With --watch the command repeats until stopped, with one line a round. Exit status 1 if problems
    remain; the report gives the reasons.

    ``bkspark.verbs`` describes the arguments shared by all commands.

    Args:
        logs: Work on this log only; may be repeated.
        ledgers: Work on this ledger only; may be repeated.
        open_grace: Recover an open ledger after this many seconds without a change; on a shell
            also 1h.
        lost_after: Also replace bookies silent for this many seconds; on a shell also 1h.
            Default: never.
        max_bytes_per_second: Read from and write to each bookie at most this many bytes per
            second, for example 50MB; default: unlimited.
        dry_run: Print the plan; change nothing.
        password_file: Read the password from this file.
        password_env: Read the password from this environment variable.
        no_lease: Run even if another run of this command is active.

    Raises:
        NoSuchLedgerError: no such log or ledger.
        CorruptDataError: the record of a lost bookie cannot be read.
        OutcomeUnknownError: the metadata store or Spark gave no definite answer.
    """

def retain(
    metadata_uri: str = "",
    *,
    log: str,
    max_bytes: int | None = None,
    max_seconds: float | None = None,
    forever: bool = False,
    ignore_cursors: bool = False,
    dry_run: bool = False,
) -> Report:
    """Delete old ledgers of a log by the log's settings.

    Options change the settings first. The command asks before setting a limit or deleting an entry.

    ``bkspark.verbs`` describes the arguments shared by all commands.

    Args:
        log: Name of the log.
        max_bytes: From now on keep at least this many bytes, for example 10GB.
        max_seconds: From now on keep ledgers this many seconds after their closing; on a shell
            also 7d. The clocks of the closing and the truncating process count: allow for their
            difference.
        forever: From now on keep all entries.
        ignore_cursors: Also delete entries that a cursor has not read yet.
        dry_run: Print the plan; change nothing.

    Raises:
        InvalidRequestError: a limit is no number, or contradicts another.
        NoSuchLedgerError: no such log.
        OutcomeUnknownError: the metadata store gave no definite answer; repeat the command.
    """

def scrub(
    metadata_uri: str = "",
    *,
    logs: Collection[str] = (),
    ledgers: Collection[int] = (),
    sample: float = 1.0,
    max_bytes_per_second: float | None = None,
    dry_run: bool = False,
    password: str = "",
    password_file: str = "",
    password_env: str = "",
    spark: SparkSession | None = None,
    tell: Callable[[str], None] | None = None,
    progress: Callable[[int, int], None] = ...,
    no_lease: bool = False,
) -> Report:
    """Read every copy and check every byte.

    The report names damaged copies, and the scrub marks them: an audit counts a marked copy as
    missing until a repair replaces the copy. Without a ledger's password only checks without a
    password are made. The scrub also reads the tables of logs. Exit status 1 if a copy is damaged
    or unreadable, or if a table does not have the rows.

    ``bkspark.verbs`` describes the arguments shared by all commands.

    Args:
        logs: Work on this log only; may be repeated.
        ledgers: Work on this ledger only; may be repeated.
        sample: Read this fraction of the files, chosen at random.
        max_bytes_per_second: Read from and write to each bookie at most this many bytes per
            second, for example 50MB; default: unlimited.
        dry_run: Print the plan; change nothing.
        password_file: Read the password from this file.
        password_env: Read the password from this environment variable.
        no_lease: Run even if another run of this command is active.

    Raises:
        InvalidRequestError: a number is out of range, or the password cannot be read.
        NoSuchLedgerError: no such log or ledger.
        OutcomeUnknownError: the metadata store or Spark gave no definite answer.
    """
