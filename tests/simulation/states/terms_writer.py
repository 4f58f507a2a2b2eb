"""The writers of ``terms``: what each may do next."""

from collections.abc import Iterator

from tests.simulation.states.terms_world import Scope, World, Writer, with_bookie, with_writer


def begin(scope: Scope, term: int, entry: int) -> Writer:
    """A writer who has sent nothing of that entry."""
    size = scope.quorum.ensemble_size
    return Writer(term, entry, ("",) * size, (-1,) * size * scope.is_guaranteed)


def steps_of(scope: Scope, world: World, number: int) -> Iterator[tuple[str, World]]:
    """What the writer of that number may do next."""
    writer = world.writers[number]
    if writer.entry >= scope.entries:
        return

    def then(after: World, at: int, place: str) -> World:
        places = (*writer.places[:at], place, *writer.places[at + 1 :])
        return with_writer(after, number, writer._replace(places=places))

    fence, permission = ("fence", writer.term + 1), ("permission", writer.term)
    looks = [(fence, False), (permission, True)]
    if not scope.looks_for_fence_first:
        looks.reverse()
    for at, place in enumerate(writer.places):
        records, markers = world.bookies[at].records, world.bookies[at].markers
        what = f"writer {writer.term}, entry {writer.entry}, bookie {at}"
        has_journal = ("journal", writer.term) in markers
        if place == "":
            more = {(writer.term, writer.entry, 0)} if has_journal else set()
            stored = with_bookie(world, at, records=records | more)
            if scope.is_guaranteed:
                said = world.said | {((writer.term, writer.entry), writer.had)}
                stored = stored._replace(said=said)
            yield f"{what}: stored", then(stored, at, "sent")
        elif place in ("sent", "unfenced"):
            marker, is_there = looks[place == "unfenced"]
            if (marker in markers) is is_there and (has_journal or place == "unfenced"):
                then_is = "unfenced" if place == "sent" else "counted"
                yield f"{what}: {then_is}", then(world, at, then_is)
    if writer.places.count("counted") >= scope.quorum.ack_quorum_size:
        acked = world.acked | {(writer.term, writer.entry)}
        following = _following(scope, writer)
        after = with_writer(world, number, following)._replace(acked=acked)
        yield f"writer {writer.term} acknowledges {writer.entry}", after


def _following(scope: Scope, writer: Writer) -> Writer:
    """The next entry; who has not stored this one stores nothing more."""
    following = begin(scope, writer.term, writer.entry + 1)
    if not scope.is_guaranteed:
        return following
    are_counted = [place == "counted" for place in writer.places]
    places = tuple("" if is_counted else "away" for is_counted in are_counted)
    had = (writer.entry if new else old for new, old in zip(are_counted, writer.had))
    return following._replace(places=places, had=tuple(had))
