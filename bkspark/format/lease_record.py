"""Records which process runs a maintenance verb. The record is advisory: no safety depends on it.

The record is never removed: a run that has ended says so in its record.
"""

from dataclasses import dataclass
from typing import Any

from bkspark.errors import CorruptDataError
from bkspark.format import layout, strict_json

KIND = "lease"
TEXT_MAX = 256
PID_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Process:
    """A process of some host.

    Attributes:
        host: its name, for people.
        machine: equal for two processes only if their ids belong to the same running system; empty
            if unknown.
        pid: > 0.
        started: differs from an earlier process with the same id; empty if unknown.
    """

    host: str
    machine: str
    pid: int
    started: str


@dataclass(frozen=True, slots=True)
class Lease:
    """A run of a verb.

    Attributes:
        token: of this run alone.
        began_ms: for people.
        renewals: how often it was renewed; each renewal is a sign of life.
        is_held: whether the run continues, as last stated by its holder.
    """

    verb: str
    token: str
    holder: Process
    began_ms: int
    renewals: int = 0
    is_held: bool = True


def encode(lease: Lease, nonce: str) -> bytes:
    holder = lease.holder
    value: dict[str, Any] = {
        "nonce": nonce,
        "verb": lease.verb,
        "token": lease.token,
        "host": holder.host[:TEXT_MAX],
        "machine": holder.machine[:TEXT_MAX],
        "pid": holder.pid,
        "started": holder.started[:TEXT_MAX],
        "began_ms": lease.began_ms,
        "renewals": lease.renewals,
        "is_held": lease.is_held,
    }
    return strict_json.encode(KIND, layout.lease_key(lease.verb), value)


def decode(verb: str, data: bytes) -> Lease:
    """Decode the lease; raise ``CorruptDataError`` if damaged, of another verb, or malformed."""
    fields = strict_json.decode(KIND, layout.lease_key(verb), data)
    texts = {name: fields.take(name, str) for name in ("host", "machine", "started")}
    pid = fields.take("pid", int)
    if fields.take("verb", str) != verb:
        raise CorruptDataError(f"{fields.what} names another verb")
    if not 0 < pid <= PID_MAX or any(len(text) > TEXT_MAX for text in texts.values()):
        raise CorruptDataError(f"{fields.what} names no process")
    try:
        token = layout.token(fields.take("token", str))
    except ValueError as error:
        raise CorruptDataError(f"{fields.what} is malformed: {error}") from error
    return Lease(
        verb=verb,
        token=token,
        holder=Process(texts["host"], texts["machine"], pid, texts["started"]),
        began_ms=fields.take("began_ms", int),
        renewals=fields.take("renewals", int),
        is_held=fields.take("is_held", bool),
    )
