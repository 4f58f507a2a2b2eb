"""Recovery and maintenance as Spark actions: tasks read and change the bookies.

The driver makes the decisions: for a recovery in ``bkspark.ledger.recovery.recover``. Only
instructions are sent to the executors: each instruction is a partition, each step is one job.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from threading import Event
from typing import Any, TypeVar

from py4j.protocol import Py4JError
from pyspark import Accumulator, SparkContext
from pyspark.accumulators import AccumulatorParam
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bkspark import environment
from bkspark.admin.log_upkeep import Compacted, CompactRun
from bkspark.admin.recovering import Recovered, RecoverLedger
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import BookKeeperError, OutcomeUnknownError
from bkspark.ledger.recovery import running
from bkspark.ledger.recovery.recover import RecoveryReport
from bkspark.ledger.recovery.running import Instruction, in_threads, still_waiting
from bkspark.log import recovering

Numbered = tuple[int, Instruction[Any]]
S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Done:
    """The result of an instruction that was carried out."""

    number: int
    result: Any


@dataclass(frozen=True, slots=True)
class Refused:
    """A deliberate error of an instruction, which the driver raises again."""

    number: int
    error: BookKeeperError


class _Numbers(AccumulatorParam[frozenset[int]]):
    """Numbers of completed instructions; a set, so a task that runs twice counts once."""

    def zero(self, value: frozenset[int]) -> frozenset[int]:
        del value
        return frozenset()

    def addInPlace(self, value1: frozenset[int], value2: frozenset[int]) -> frozenset[int]:
        return value1 | value2


@dataclass(frozen=True, slots=True)
class SparkRunner:
    """Carries out instructions as the tasks of one Spark job.

    Attributes:
        tell: called with a line about bookies without an answer so far, as in ``in_threads``.
    """

    context: SparkContext
    tell: Callable[[str], None] | None = None

    def telling(self, tell: Callable[[str], None]) -> "SparkRunner":
        return replace(self, tell=tell)

    def __call__(self, instructions: Sequence[Instruction[Any]]) -> list[Any]:
        """Return the results, in order.

        Raises:
            OutcomeUnknownError: the job failed, or a result is missing: neither shows what is on a
                bookie (H30).
        """
        if not instructions:
            return []
        numbered = list(enumerate(instructions))
        done = self.context.accumulator(frozenset[int](), _Numbers())
        tasks = self.context.parallelize(numbered, len(numbered)).map(partial(_said, done))
        with self._telling(lambda: [i for number, i in numbered if number not in done.value]):
            try:
                answers = tasks.collect()
            except (Py4JError, PySparkException) as error:
                raise OutcomeUnknownError(
                    f"Spark did not finish a step: {_first_line(error)}",
                    hint="run it again",
                ) from error
        return in_order(answers, len(numbered))

    @contextmanager
    def _telling(self, left: Callable[[], list[Instruction[Any]]]) -> Iterator[None]:
        """Report repeatedly the bookies whose instructions are ``left``."""
        is_over, tell = Event(), self.tell

        def watch() -> None:
            while tell is not None and not is_over.wait(running.TELL_SECONDS):
                waiting = left()
                if waiting:
                    tell(still_waiting(i.address.bookie_id for i in waiting))

        watcher = environment.start(watch, "tell-of-waiting")
        try:
            yield
        finally:
            is_over.set()
            watcher.join()


def _said(done: "Accumulator[frozenset[int]]", numbered: Numbered) -> "Done | Refused":
    """Call ``carry_out``, and notify the driver as soon as the task ends."""
    answer = carry_out(numbered)
    done.add(frozenset({answer.number}))
    return answer


def carry_out(numbered: Numbered) -> Done | Refused:
    """Carry out one instruction; a bookie that hangs does not block it for ever.

    Runs on: executor, once per task attempt.
    """
    number, instruction = numbered
    try:
        [result] = in_threads([instruction])
        return Done(number, result)
    except BookKeeperError as error:
        return Refused(number, error)


def in_order(answers: Sequence[Done | Refused], count: int) -> list[Any]:
    """Return the results of ``count`` instructions, one each.

    Raises:
        OutcomeUnknownError: a result is missing or duplicate.
        BookKeeperError: an instruction was refused.
    """
    results: dict[int, Any] = {}
    for answer in answers:
        if isinstance(answer, Refused):
            raise answer.error
        results[answer.number] = answer.result
    if sorted(results) != list(range(count)) or len(answers) != count:
        raise OutcomeUnknownError(
            f"{count} bookies were asked, but {len(results)} answers came back",
            hint="run it again",
        )
    return [results[number] for number in range(count)]


def recover_ledger(
    spark: SparkSession,
    metadata_uri: str,
    ledger_id: int,
    password: Password | None = None,
    *,
    seals: bool = False,
    tell: Callable[[str], None] | None = None,
    accepts_loss: bool = False,
) -> RecoveryReport:
    """Fence the ledger's writer and close the ledger; raise the errors of ``ledger.recovery``.

    The active tail of an unbounded log is OPEN again afterwards, unless ``seals`` is true
    (``log.recovering``).

    Only the driver needs the metadata store. Executors need the bookies, and access to the password
    file or variable, if any.
    """
    runner = SparkRunner(spark.sparkContext)
    with Cluster(metadata_uri) as cluster:
        return recovering.recover_ledger(
            cluster,
            ledger_id,
            password or Password(),
            seals=seals,
            run=runner,
            tell=tell,
            accepts_loss=lambda _loss: accepts_loss,
        )


def compact_runs(context: SparkContext, tasks: Sequence[CompactRun]) -> list[Compacted]:
    """Rewrite runs of a log's ledgers as the tasks of one Spark job, one task for each run.

    Executors need the metadata store, the bookies, and access to the password file or variable, if
    any.

    Raises:
        OutcomeUnknownError: the job failed; runs that were rewritten before stay rewritten.
    """
    return _each_by_itself(context, tasks, CompactRun.carry_out, "the compaction")


def recover_ledgers(context: SparkContext, tasks: Sequence[RecoverLedger]) -> list[Recovered]:
    """Recover ledgers as the tasks of one Spark job, one task for each ledger.

    Executors need the metadata store, the bookies, and access to the password file or variable, if
    any.

    Raises:
        OutcomeUnknownError: the job failed; ledgers that were recovered before stay recovered.
    """
    return _each_by_itself(context, tasks, RecoverLedger.run, "the recoveries")


def _each_by_itself(
    context: SparkContext, tasks: Sequence[S], work: Callable[[S], T], what: str
) -> list[T]:
    """Call ``work`` for each of ``tasks``, each as a partition of one job.

    Raises:
        OutcomeUnknownError: the job failed.
    """
    if not tasks:
        return []
    try:
        return context.parallelize(tasks, len(tasks)).map(work).collect()
    except (Py4JError, PySparkException) as error:
        raise OutcomeUnknownError(
            f"Spark did not finish {what}: {_first_line(error)}", hint="run it again"
        ) from error


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
