"""The plan of a scrub."""

from dataclasses import dataclass, field

from bkspark.admin.auditing.audit_plan import AuditPlan
from bkspark.admin.maintenance import Facts
from bkspark.cluster.arguments import require_number
from bkspark.cluster.password import Password
from bkspark.errors import InvalidRequestError
from bkspark.quantities import shown

LEDGERS_AT_ONCE = 256
"""Ledgers read between two progress reports."""


@dataclass(frozen=True, slots=True)
class ScrubRequest:
    """Arguments of a scrub, except the ledgers.

    Attributes:
        sample: fraction of the files to read, chosen at random.
        bytes_per_second: limit of the read rate of each bookie; None for unlimited.

    Raises:
        InvalidRequestError: a number is out of range.
    """

    password: Password = field(default_factory=Password)
    sample: float = 1.0
    bytes_per_second: float | None = None

    def __post_init__(self) -> None:
        require_number("the sample", self.sample, hint="give a fraction, such as 0.1")
        if self.sample > 1:
            raise InvalidRequestError(
                f"a sample cannot be {shown(self.sample)} of the files",
                hint="give a fraction up to 1",
            )
        if self.bytes_per_second is not None:
            rate = "max_bytes_per_second"
            require_number(rate, self.bytes_per_second, hint="give bytes, for example 50000000")


@dataclass(frozen=True, slots=True)
class ScrubPlan:
    """The ledgers of an audit's plan, split into small steps."""

    looked_at: AuditPlan
    sample: float
    bytes_per_second: float | None

    @property
    def ledger_ids(self) -> tuple[int, ...]:
        return tuple(i for step in self.looked_at.steps for i in step.ledger_ids)

    @property
    def facts(self) -> Facts:
        return {
            "ledgers": self.looked_at.ledger_count,
            "bookies": list(self.looked_at.bookie_ids),
            "sample": self.sample,
            "max_bytes_per_second": self.bytes_per_second,
            "is_of_all": self.looked_at.is_of_all,
        }
