"""The messages of a recovery that cannot decide: awaited bookies, doubts, and the next step.

Recoveries that are stuck without an explanation are the oldest complaint about systems of this
kind. So each message names the entry, the bookies and the command.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from bkspark.protocol.ledger.metadata import LedgerMetadata, Member
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import AddRecord
from bkspark.protocol.recovery.steps import Stuck
from bkspark.protocol.recovery.verdicts import (
    Doubt,
    GroupDecision,
    Loss,
    MemberAnswer,
    Span,
    Verdict,
    given_up,
)


def entries(first: int, last: int) -> str:
    """Name a range of entries in words."""
    return f"entry {last}" if first == last else f"entries {first} to {last}"


def bring_back(silent: Iterable[Member], known: Collection[Member]) -> str:
    """Return the hint for a recovery that waits for bookies."""
    return (
        "bring back one of these bookies, then recover again; if a bookie will never come "
        f"back: {_lost_commands(silent, known)}"
    )


def _lost_commands(members: Iterable[Member], known: Collection[Member]) -> str:
    return ", ".join(_lost_command(member, known) for member in members)


def _lost_command(member: Member, known: Collection[Member]) -> str:
    is_older = member not in known and any(m.bookie_id == member.bookie_id for m in known)
    which = f" --incarnation {member.incarnation}" if is_older else ""
    return f"`bkspark bookie lost {member.bookie_id}{which}`"


def accept(ledger_id: int, loss: str) -> str:
    """Return the hint if only the operator's consent helps."""
    return f"`bkspark ledger recover {ledger_id} --accept-loss` closes it with this loss: {loss}"


def unconfirmed_loss(
    decision: GroupDecision, answers: Mapping[int, MemberAnswer], quorum: Quorum
) -> str:
    """Describe what is given up if the ledger is closed before a lost group.

    Lists each range: entries whole on no bookie, and whole entries given up as well, since entries
    are acknowledged in order and a ledger has no gaps.
    """
    pieces = given_up(decision.first_entry_id, answers, quorum)
    if not pieces:
        first = decision.first_entry_id
        return f"entries from {first} on are given up, although they may have been acknowledged"
    ranges = {
        is_whole: ", ".join(
            entries(piece.first_entry_id, piece.last_entry_id)
            for piece in pieces
            if piece.is_whole is is_whole
        )
        for is_whole in (False, True)
    }
    whole = (
        f"; {ranges[True]} are given up as well: they are complete, but come later"
        if ranges[True]
        else ""
    )
    return (
        f"{ranges[False]} and all later entries are given up, and may have been acknowledged: "
        f"no bookie has {ranges[False]} complete{whole}"
    )


def confirmed_loss(first: int, last: int) -> str:
    """Describe the loss of the last confirmed entry's record."""
    verb = "was" if first == last else "were"
    return f"{entries(first, last)} {verb} acknowledged and cannot be read any more"


def loss_with_bookies(loss: Loss) -> str:
    """Describe entries that are lost, or may be, because bookies are gone."""
    names, gone = (", ".join(m.bookie_id for m in group) for group in (loss.members, loss.gone))
    those = f"of {entries(loss.first_entry_id, loss.last_entry_id)}, the entries stored on {names}"
    why = "were declared lost or initialised again"
    if loss.damaged:
        damaged = ", ".join(member.bookie_id for member in loss.damaged)
        others = f", the other bookies {why}" if loss.damaged != loss.gone else ""
        why = f"are of no use: the journals on {damaged} are damaged or missing{others}"
    if loss.is_certain:
        return f"{those} cannot be read: all these bookies {why}"
    return f"{those} may have had copies on {gone} only, and these bookies {why}"


def stuck(
    ledger: LedgerMetadata,
    decision: GroupDecision,
    answers: Mapping[int, MemberAnswer],
    problems: Mapping[int, str],
    known: Collection[Member],
) -> Stuck:
    """Explain why the ledger cannot be closed; the caller adds the members to wait for.

    Args:
        problems: by ensemble index, in one line each.
    """
    first = decision.first_entry_id
    what = "not all its rows were found" if decision.record else "it may have been acknowledged"
    in_doubt = f"ledger {ledger.ledger_id} cannot be closed yet: entry {first} is in doubt ({what})"
    ensemble = ledger.last_fragment.ensemble
    if decision.verdict is Verdict.LOST:
        return Stuck(
            f"{in_doubt}, and {only_they_could_tell(decision, ensemble, answers, problems)}",
            accept(ledger.ledger_id, unconfirmed_loss(decision, answers, ledger.quorum)),
            first,
        )
    names = _names(ensemble[index] for index in decision.waiting_for)
    reasons = [problems.get(index, "it does not answer") for index in decision.waiting_for]
    unable = (Doubt.DAMAGED, Doubt.DATA_LOST)
    reasons += [problems[i] for i, answer in answers.items() if answer.doubt in unable]
    return Stuck(
        f"{in_doubt}, no sure answer from {names} ({'; '.join(reasons)})",
        _next_step(decision, ledger, answers, known),
        first,
    )


def _next_step(
    decision: GroupDecision,
    ledger: LedgerMetadata,
    answers: Mapping[int, MemberAnswer],
    known: Collection[Member],
) -> str:
    """Return the hint for silent bookies, or for bookies with unclear journals."""
    ensemble = ledger.last_fragment.ensemble
    silent = [ensemble[index] for index in decision.waiting_for if index not in answers]
    unfenced = [
        ensemble[index]
        for index in decision.waiting_for
        if index in answers and answers[index].doubt is Doubt.UNFENCED
    ]
    hints = [bring_back(silent, known)] if silent else []
    if unfenced:
        hints.append(
            f"make {_names(unfenced)} writable again, then recover again; if a bookie will "
            f"stay read-only for ever: {_lost_commands(unfenced, known)}"
        )
    if hints:
        return "; or ".join(hints)
    unclear = _names(ensemble[index] for index in decision.waiting_for)
    return f"repair the journals on {unclear}, then recover again"


def since_lost(
    ledger_id: int,
    entry_id: int | None,
    lost: Iterable[Member],
    silent: Collection[Member],
    known: Collection[Member],
) -> tuple[str, str]:
    """Return reason and hint of a recovery whose awaited bookies were declared lost since.

    Args:
        silent: the bookies that the recovery still waits for.
    """
    gone = f"declared lost since then: {_names(lost)}"
    if entry_id is None or not silent:
        return (
            (
                f"ledger {ledger_id} is not closed yet; the last recovery waited for bookies that "
                f"were {gone}"
            ),
            f"`bkspark ledger recover {ledger_id}` closes it, or names the loss to accept",
        )
    return (
        f"ledger {ledger_id} cannot be closed yet: entry {entry_id} is in doubt, no sure answer "
        f"from {_names(silent)} ({gone})",
        bring_back(silent, known),
    )


def _names(members: Iterable[Member]) -> str:
    return ", ".join(member.bookie_id for member in members)


def only_they_could_tell(
    decision: GroupDecision,
    ensemble: Sequence[Member],
    answers: Mapping[int, MemberAnswer],
    problems: Mapping[int, str],
) -> str:
    """Name the bookies that could decide about a lost group, and why none ever will."""

    def why(index: int) -> str:
        if decision.first_entry_id in answers[index].records:
            return "its rows are damaged"
        if answers[index].doubt is Doubt.LOST:
            return "declared lost"
        return problems[index]

    reasons = "; ".join(dict.fromkeys(why(index) for index in decision.waiting_for))
    names = _names(ensemble[index] for index in decision.waiting_for)
    return f"only {names} could tell ({reasons})"


def no_record(
    ledger: LedgerMetadata, entry_id: int, silent: Mapping[Member, str], known: Collection[Member]
) -> Stuck:
    """Explain why the recovery waits for the record of the last confirmed entry.

    Args:
        silent: the members that may have the record, each with the reason in one line.
    """
    return Stuck(
        f"ledger {ledger.ledger_id}: no bookie shows the record of the confirmed entry {entry_id} "
        f"({'; '.join(silent.values())})",
        bring_back(silent, known),
        waiting_for=tuple(silent),
    )


def not_replicated(
    ledger: LedgerMetadata, gaps: Sequence[Span], waiting_for: tuple[Member, ...]
) -> Stuck:
    """Explain why a ledger that guarantees its write quorum waits for bookies.

    Args:
        gaps: confirmed entries that may have fewer copies, and that no answer shows.
    """
    lacking = ", ".join(entries(first, last or first) for first, last in gaps)
    names = ", ".join(member.bookie_id for member in waiting_for)
    return Stuck(
        f"ledger {ledger.ledger_id} cannot be closed yet: it guarantees "
        f"{ledger.quorum.write_quorum_size} copies, {lacking} may have fewer, and no bookie "
        f"that answers has them (no sure answer from {names})",
        bring_back(waiting_for, ()),
        gaps[0][0],
        waiting_for,
    )


def record_is_lost(
    ledger: LedgerMetadata, entry_id: int, loss: str, waiting_for: tuple[Member, ...]
) -> Stuck:
    """Explain why the operator's consent is needed if no remaining bookie has the record."""
    return Stuck(
        f"ledger {ledger.ledger_id} cannot be closed yet: no remaining bookie has the record "
        f"of the confirmed entry {entry_id}",
        accept(ledger.ledger_id, loss),
        waiting_for=waiting_for,
    )


def confirmed_is_gone(loss: Loss) -> str:
    """Return the warning about confirmed entries that are, or may be, lost."""
    line = f"DATA LOSS: {loss_with_bookies(loss)}"
    return line if loss.is_certain else f"POSSIBLE {line}; read the entries to find out"


def too_few(
    ledger: LedgerMetadata, group: AddRecord, needed: int, problems: Iterable[str]
) -> Stuck:
    """Explain why the found entries cannot be written back.

    Args:
        needed: number of bookies that must have the entries.
    """
    what = entries(group.first_entry_id, group.last_entry_id)
    verb = "was" if group.entry_count == 1 else "were"
    return Stuck(
        f"ledger {ledger.ledger_id} cannot be closed yet: {what} {verb} found but cannot be "
        f"written to {needed} bookies ({'; '.join(problems)})",
        "bring back one of these bookies, or add one (`bkspark bookie add URL`), then recover "
        "again",
    )


def too_few_members(ledger: LedgerMetadata, problems: Iterable[str]) -> Stuck:
    """Explain why no writer can continue the ledger: a new fragment has E members."""
    needed = ledger.quorum.ensemble_size
    return Stuck(
        f"ledger {ledger.ledger_id} is recovered and cannot be written to yet: it needs {needed} "
        f"bookies ({'; '.join(problems)})",
        "bring back one of these bookies, or add one (`bkspark bookie add URL`); then try again",
    )


def cannot_be_read(ledger: LedgerMetadata, group: AddRecord, reason: str) -> Stuck:
    """Explain why the found entries can no longer be copied."""
    what = entries(group.first_entry_id, group.last_entry_id)
    return Stuck(
        f"ledger {ledger.ledger_id} cannot be closed yet: the recovery has found {what}, but "
        f"can no longer read all copies: {reason}",
        "bring back one of these bookies, then recover again",
    )
