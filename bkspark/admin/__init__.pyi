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
    """Missing copies, and ledgers that wait for recovery.

    Says which, on which bookies, and why. Reads records and looks at files, and no rows. Exit
    status 1 if something is not well.

    Args:
        logs: Only this log. May be repeated.
        ledgers: Only this ledger. May be repeated.
        dry_run: Print the plan; change nothing.
        The rest is that of all commands: ``bkspark.verbs``.

    Raises:
        NoSuchLedgerError: there is no such log or ledger.
        OutcomeUnknownError: the metadata store, or Spark, gave no sure answer.
    """

def collect(
    metadata_uri: str = "",
    *,
    abandoned_after: float = 604800.0,
    dry_run: bool = False,
    spark: SparkSession | None = None,
    tell: Callable[[str], None] | None = None,
    progress: Callable[[int, int], None] = ...,
    no_lease: bool = False,
) -> Report:
    """Free the space of what was deleted, and of what nobody wants.

    Of deleted ledgers and logs, of what retention, truncation and overwriting let go of, of
    writes that were aborted or killed, and of closed ledgers where they have no place any more, or
    no record names a file. Can be killed at any point and run again, beside anything
    else. A bookie that is away is owed it until it is back. Exit status 1 if something is left.

    Args:
        abandoned_after: Time before an unfinished write counts as abandoned; a longer write
            fails at commit.
        dry_run: Print the plan; change nothing.
        no_lease: Run also beside another run of this command.
        The rest is that of all commands: ``bkspark.verbs``.

    Raises:
        OutcomeUnknownError: the metadata store, or Spark, gave no sure answer; run it again.
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
    """Make large ledgers of a log's small ones.

    Offsets, and what is at each, stay as they are; _ledger_id and _entry_id name the new ledgers.
    Nobody who reads or writes is disturbed, and it can be killed at any point and run again.
    `bkspark collect` frees the old ledgers once readers had a day. Exit status 1 if something is
    left; it says what and why.

    Args:
        log: The log's name.
        target_bytes: A large ledger, for example 512MB. Those of up to half of it are small.
        max_bytes_per_second: No more than that of each bookie, for example 50MB.
        dry_run: Print the plan; change nothing.
        password_file: Holds the password.
        password_env: Environment variable that holds the password.
        The rest is that of all commands: ``bkspark.verbs``.

    Raises:
        InvalidRequestError: a number is out of range.
        NoSuchLedgerError: there is no such log.
        UnauthorizedError: the log takes a password, which is missing or wrong.
        OutcomeUnknownError: the metadata store, or Spark, gave no sure answer; run it again.
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

    Nothing new is placed on them, what they have of closed ledgers goes to others, and those that
    no ledger names any more are removed, for ever. What stands in the way is named, and the same
    command goes on later; `bkspark bookie readonly ID --off` takes it back before the end. Exit
    status 1 if something is left.

    Args:
        bookies: Which bookies.
        force: Though ledgers stand in the way, where others have them.
        max_bytes_per_second: No more than that of each bookie, for example 50MB.
        dry_run: Print the plan; change nothing.
        password_file: Holds the password.
        password_env: Environment variable that holds the password.
        The rest is that of all commands: ``bkspark.verbs``.

    Raises:
        InvalidRequestError: no bookie is named, or one that there never was.
        OutcomeUnknownError: the metadata store, or Spark, gave no sure answer.
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
    """Even out how much is on each bookie, after some were added.

    Copies of closed ledgers move, the fullest bookie's first, until none is farther from the mean
    than the threshold, or nothing helps. Reckoned are bytes of ledgers as bookies report them, by
    the size of the disk where all are known. Exit status 1 if something is left.

    Args:
        threshold: So far a bookie may be from the mean.
        max_bytes_per_second: No more than that of each bookie, for example 50MB.
        dry_run: Print the plan; change nothing.
        password_file: Holds the password.
        password_env: Environment variable that holds the password.
        no_lease: Run also beside another run of this command.
        The rest is that of all commands: ``bkspark.verbs``.

    Raises:
        InvalidRequestError: a number is out of range.
        OutcomeUnknownError: the metadata store, or Spark, gave no sure answer.
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

    No acknowledged entry is lost. With --all those that wait for a recovery, and open ones that
    were seen unchanged for --open-grace; what is seen is remembered from run to run. What cannot
    be decided yet is left with the reason, and holds up no other. Exit status 1 if something is.
    The ledger that an unbounded log goes on in is OPEN again then; --all leaves it alone if
    nothing was written since it was the last time.

    Args:
        ledgers: These, whoever writes to them.
        open_grace: How long an open ledger must be seen unchanged, for example 1h.
        dry_run: Print the plan; change nothing.
        password_file: Holds the password.
        password_env: Environment variable that holds the password.
        no_lease: Run also beside another run of this command.
        The rest is that of all commands: ``bkspark.verbs``.

    Raises:
        InvalidRequestError: a number is out of range.
        NoSuchLedgerError: there is no such ledger.
        OutcomeUnknownError: the metadata store, or Spark, gave no sure answer.
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
    """Make missing copies of closed ledgers again, the worst first.

    On the same bookie where it answers, else on another one, which takes its place. A repair of
    all closes first what has lost its writer, as `recover --all` does. With --watch it goes on
    until it is stopped, one line a round. Exit status 1 if something is left; it says what and why.

    Args:
        logs: Only this log. May be repeated.
        ledgers: Only this ledger. May be repeated.
        open_grace: How long an open ledger must be seen unchanged, for example 1h.
        lost_after: Replace also bookies that are silent for so long.
        max_bytes_per_second: No more than that of each bookie, for example 50MB.
        dry_run: Print the plan; change nothing.
        password_file: Holds the password.
        password_env: Environment variable that holds the password.
        no_lease: Run also beside another run of this command.
        The rest is that of all commands: ``bkspark.verbs``.

    Raises:
        NoSuchLedgerError: there is no such log or ledger.
        CorruptDataError: a bookie's record cannot be read.
        OutcomeUnknownError: the metadata store, or Spark, gave no sure answer.
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
    """Delete old ledgers of a log as its settings say.

    Options change the settings first. It asks before a limit is set or an entry goes.

    Args:
        log: The log's name.
        max_bytes: From now on keep at least as much, for example 10GB.
        max_seconds: From now on keep ledgers so long after they were closed, for example 7d.
            Two clocks count, that of the closing and that of the truncating process: leave room
            for what they differ by.
        forever: From now on keep all.
        ignore_cursors: Also what a cursor has yet to read.
        dry_run: Print the plan; change nothing.
        The rest is that of all commands: ``bkspark.verbs``.

    Raises:
        InvalidRequestError: a limit is no number, or contradicts another.
        NoSuchLedgerError: there is no such log.
        OutcomeUnknownError: the metadata store gave no sure answer; run it again.
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

    What is damaged is named and marked: an audit counts it as missing until it was made again.
    Without a ledger's password only what needs none is checked of it. Exit status 1 if something
    is damaged or could not be read.

    Args:
        logs: Only this log. May be repeated.
        ledgers: Only this ledger. May be repeated.
        sample: So much of the files, drawn by chance.
        max_bytes_per_second: No more than that of each bookie, for example 50MB.
        dry_run: Print the plan; change nothing.
        password_file: Holds the password.
        password_env: Environment variable that holds the password.
        no_lease: Run also beside another run of this command.
        The rest is that of all commands: ``bkspark.verbs``.

    Raises:
        InvalidRequestError: a number is out of range, or the password cannot be read.
        NoSuchLedgerError: there is no such log or ledger.
        OutcomeUnknownError: the metadata store, or Spark, gave no sure answer.
    """
