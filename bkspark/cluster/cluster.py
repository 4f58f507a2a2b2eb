"""A cluster as its clients see it: the records in its metadata store and its bookies."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Self

from bkspark import environment
from bkspark.bookie.checks import TooManyOpenFilesError
from bkspark.bookie.contract import BookieAddress
from bkspark.cluster import arguments, bookie_client, fan_out
from bkspark.cluster.bookie_client import BookieClient
from bkspark.cluster.bookie_status import BookieStatus, Usable, look_at, note_fullness, usable
from bkspark.cluster.guards import BoundToProcess
from bkspark.cluster.hanging import HangMemory, TimedStore, patient
from bkspark.cluster.ledger_ids import LedgerIds
from bkspark.cluster.log_messages import leave_out, leave_out_into
from bkspark.cluster.log_records import LogRecords
from bkspark.cluster.records import Records, StepOver, UpkeepRecords, Versioned, make_cluster
from bkspark.errors import (
    BookieUnavailableError,
    CorruptDataError,
    InvalidRequestError,
    NoSuchLedgerError,
)
from bkspark.format import cluster as cluster_format
from bkspark.format import layout, ledger_metadata
from bkspark.format.cluster import BookieRecord, ClusterRecord
from bkspark.metadata import contract, freshness, patience
from bkspark.metadata import uri as metadata_stores
from bkspark.metadata.contract import MetadataStore
from bkspark.protocol.bookies import Labels, Quarantine
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.protocol.log.record import LogRecord
from bkspark.storage import access
from bkspark.storage.address import canonical, shown_url, with_store

# Only what makes bookies imports these checks: each process that Spark starts opens a cluster.
if TYPE_CHECKING:
    from bkspark.cluster.admission import NewBookie, Site

DOMAINS_READ_MAX = 256
"""Records that a search for other failure domains reads at once."""


class Cluster(BoundToProcess):
    """Typed access to one cluster. Holds a connection; use it in a ``with`` block.

    Attributes:
        untimed_ledgers: without the detour through a second task, for a task whose callers wait for
            it with a time limit of their own.
        registrations: of bookies.
        unreadable: skipped records by key, with the reason; only a ``Survey`` skips records.
        left_out: ids of bookies to treat as unknown, as if their records were unreadable.

    Raises:
        InvalidRequestError: the URI is malformed, or names no cluster.
    """

    def __init__(
        self, metadata_uri: str, metadata_timeout: float | None = None, *, cluster_id: str = ""
    ) -> None:
        seconds = patience.chosen() if metadata_timeout is None else metadata_timeout
        store = patient(metadata_stores.open_store(metadata_uri), seconds)
        self.store = TimedStore(store, seconds)
        self.unreadable: dict[str, str] = {}
        self.left_out: frozenset[str] = frozenset()
        self._places: dict[Member, BookieAddress] = {}
        try:
            with freshness.from_begin():
                self._identity = self._read_identity(cluster_id)
        except BaseException:
            self.store.close()
            raise
        own_id = self.cluster_id
        self.ledgers = _ledgers(self.store, own_id)
        self.untimed_ledgers = _ledgers(store, own_id)
        self.logs = LogRecords(self.store, own_id)
        self.registrations: Records[BookieRecord] = Records(
            self.store,
            own_id,
            layout.bookie_key,
            cluster_format.encode_bookie,
            cluster_format.decode_bookie,
        )
        self._ledger_ids = LedgerIds(self.store, own_id)
        self.upkeep = UpkeepRecords(self.store, own_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()

    @property
    def uri(self) -> str:
        """The address of the metadata store, in one spelling."""
        return self.store.uri

    @property
    def cluster_id(self) -> str:
        return self._identity.cluster_id

    @property
    def storage_risk(self) -> str:
        """Why the metadata store might lose records, if the operator accepted the risk."""
        return self._identity.storage_risk

    @property
    def group(self) -> int | None:
        """The id of the group whose members share folders and files, if there is a group."""
        return self._identity.group

    # --- ledgers and logs ------------------------------------------------------------------

    def new_ledger_id(self) -> int:
        """An id that no ledger has had or will have again."""
        return self._ledger_ids.new()

    def next_ledger_id(self) -> int | None:
        """An id above all ids given out so far; None if none was, or a survey cannot tell."""
        return self._ledger_ids.next()

    def ledger(self, ledger_id: int) -> Versioned[LedgerMetadata]:
        """The ledger's newest metadata.

        Raises:
            NoSuchLedgerError: never existed, or is being deleted.
        """
        seen = self.ledgers.get(str(ledger_id))
        if seen is None or seen.value.state is LedgerState.DELETING:
            raise NoSuchLedgerError(
                f"there is no ledger {ledger_id}",
                hint="`bkspark ledgers` lists them; read entries of a compacted ledger from "
                "its log",
            )
        return seen

    def ledger_ids(self) -> list[int]:
        """Ids of all ledgers, tombstones included, ascending."""
        return [layout.parse_ledger_key(name) for name in self.store.list(layout.LEDGERS_PREFIX)]

    def log(self, name: str) -> Versioned[LogRecord]:
        """The log's newest record.

        Raises:
            NoSuchLedgerError: there is no such log.
        """
        seen = self.logs.get(name)
        if seen is None or seen.value.is_tombstone:
            raise NoSuchLedgerError(f"there is no log {name!r}", hint="`bkspark logs` lists them")
        return seen

    def log_names(self) -> list[str]:
        """Names that have or had a log."""
        return self.store.list(layout.LOGS_PREFIX)

    # --- bookies ---------------------------------------------------------------------------

    def bookies(self, step_over: StepOver | None = None) -> dict[str, BookieRecord]:
        """All registered bookies by id; bookies with unreadable records go to ``step_over``."""
        found = self._registered(step_over)
        return {n: x for n, x in found.items() if not x.is_removed and n not in self.left_out}

    def _registered(self, step_over: StepOver | None = None) -> dict[str, BookieRecord]:
        return self.registrations.of_all(self.store.get_all("bookies"), step_over)

    def bookie(self, bookie_id: str) -> Versioned[BookieRecord]:
        """The record of a registered bookie.

        Raises:
            InvalidRequestError: there is none.
        """
        seen = self.registrations.get(layout.bookie_id(bookie_id))
        if seen is None or seen.value.is_removed:
            raise InvalidRequestError(
                f"there is no bookie {bookie_id!r}", hint="`bkspark bookies` lists them"
            )
        return seen

    def is_going(self, member: Member) -> bool:
        """Whether a bookie is being removed; asked after storing a ledger that names the bookie.

        The remover marks the bookie first, and then searches for ledgers that name the bookie. So
        at least one of the two clients notices the other (``admin.bookies.removing``).
        """
        seen = self.registrations.get(member.bookie_id)
        return seen is None or seen.value.is_going  # unreadable and left out: it may be going

    def address(self, record: BookieRecord) -> BookieAddress:
        return BookieAddress(
            record.bookie_id,
            record.incarnation,
            self.cluster_id,
            record.url,
            record.domain,
            record.store,
            record.labels,
        )

    def addresses(self, step_over: StepOver | None = None) -> dict[Member, BookieAddress]:
        """The place of each registered member; members of older incarnations are gone.

        Args:
            step_over: as for ``bookies``; only if a missing bookie counts as silent.
        """
        return {
            Member(record.bookie_id, record.incarnation): self.address(record)
            for record in self.bookies(step_over).values()
        }

    def addresses_of(
        self,
        members: Iterable[Member],
        step_over: StepOver | None = None,
        *,
        is_anew: bool = False,
    ) -> dict[Member, BookieAddress]:
        """The places of those of ``members`` that are registered, each looked up once.

        The cost grows with ``members`` and not with the cluster. A bookie that was moved since it
        was looked up does not answer at its old place: then ``forget_address``.

        Args:
            step_over: as for ``bookies``; only if a missing bookie counts as silent.
            is_anew: look all of them up now.
        """
        wanted = dict.fromkeys(members)
        for member in wanted if is_anew else ():
            self.forget_address(member)
        names = {m.bookie_id for m in wanted if m not in self._places} - self.left_out
        if names:
            answers = self.store.get_each(layout.BOOKIES_PREFIX, sorted(names))
            for record in self.registrations.of_all(answers, step_over).values():
                if not record.is_removed:
                    address = self.address(record)
                    self._places[address.member] = address
        return {member: self._places[member] for member in wanted if member in self._places}

    def present(
        self, bookie_ids: Iterable[str], step_over: StepOver | None = None
    ) -> dict[Member, BookieAddress]:
        """The registered members with these ids, in whatever incarnation, and their places."""
        names = sorted({*bookie_ids} - self.left_out)
        answers = self.store.get_each(layout.BOOKIES_PREFIX, names)
        found = self.registrations.of_all(answers, step_over).values()
        addresses = (self.address(record) for record in found if not record.is_removed)
        return {address.member: address for address in addresses}

    def count_others(self, bookie_ids: Collection[str], enough: int) -> int:
        """The number of other registered bookies, or ``enough`` if there are more."""
        return len(self._drawn(bookie_ids, enough, None)[0])

    def forget_address(self, member: Member) -> None:
        """Look the place of ``member`` up again when it is needed next."""
        self._places.pop(member, None)

    def lost_members(
        self, step_over: StepOver | None = None, among: Collection[str] | None = None
    ) -> frozenset[Member]:
        """Members that an operator declared lost for ever; unreadable records go to ``step_over``.

        Args:
            step_over: only if a bookie counts as possibly alive while its record is unreadable, and
                is not given new data.
            among: ids of bookies to look at; None for all.
        """
        answers = self.store.get_some(
            layout.LOST_PREFIX,
            lambda names: names if among is None else [n for n in names if n in among],
        )
        found = self.upkeep.lost.of_all(answers, step_over)
        return frozenset(
            Member(name, incarnation)
            for name, lost in found.items()
            for incarnation in lost.incarnations
        )

    def is_lost(self, member: Member) -> bool:
        """Whether an operator declared the member lost for ever; reads one record."""
        seen = self.upkeep.lost.get(member.bookie_id)
        return seen is not None and member.incarnation in seen.value.incarnations

    def lasting_members(self) -> frozenset[Member]:
        """Members that keep their data: neither lost nor closed by an operator."""
        lasting = (r for r in self.bookies().values() if not (r.is_read_only or r.is_going))
        members = frozenset(Member(record.bookie_id, record.incarnation) for record in lasting)
        return members - self.lost_members()

    def probe(
        self,
        *,
        exclude: Collection[str] = (),
        enough: int | None = None,
        needed: int = 0,
        step_over: StepOver | None = None,
    ) -> list[BookieStatus]:
        """Look at every bookie concurrently: its cookie and its free space.

        A bookie that does not answer in time is unusable now, and nothing else is concluded. For a
        while no client of this process asks that bookie again or waits for it (``hang_memory``).

        Args:
            exclude: bookie ids to skip.
            enough: once so many are usable, wait only shortly for the rest.
            needed: if fewer are usable in time, silent bookies get more time.

        Raises:
            NothingSentError: this process cannot open files, so it cannot look.
        """
        known = self.bookies(step_over).values()
        records = [record for record in known if record.bookie_id not in exclude]
        return self._probed(records, enough, needed)

    def look_at(self, record: BookieRecord) -> BookieStatus:
        """Look at one bookie, as ``probe`` does."""
        return self._probed([record], None, 0)[0]

    def _probed(
        self, records: Sequence[BookieRecord], enough: int | None, needed: int
    ) -> list[BookieStatus]:
        answers = fan_out.ask_all(
            {BookieClient(self.address(r)): self._look_at(r) for r in records},
            fan_out.Timeouts(bookie_client.ANSWER_SECONDS, grace_seconds=fan_out.GRACE_SECONDS),
            is_usable=lambda status: status.may_join,
            enough=enough,
            needed=needed,
        )
        for seen in answers.values():
            if isinstance(seen, TooManyOpenFilesError):
                raise seen.nothing_sent()
        return [
            BookieStatus(record, f"bookie {record.bookie_id} does not answer")
            if isinstance(seen, BookieUnavailableError)
            else seen
            for record, seen in zip(records, answers.values(), strict=True)
        ]

    def refresh_candidates(
        self,
        *,
        exclude: Collection[str] = (),
        enough: int | None = None,
        needed: int = 0,
        at_most: int | None = None,
        among: Sequence[str] | None = None,
    ) -> Usable:
        """Bookies that may join an ensemble now, without those declared lost.

        A bookie whose disk has passed a mark is noted in the bookie's record.

        Args:
            exclude, enough, needed: see ``probe``.
            at_most: look at so many bookies, drawn by chance; None for all.
            among: ids of the only bookies to draw from; None for all bookies.
        """
        records, others = self._drawn(exclude, at_most, among)
        unknown = set[str]()
        lost = self.lost_members(leave_out_into(unknown), {record.bookie_id for record in records})
        asked = [record for record in records if record.bookie_id not in unknown]
        statuses = self._probed(asked, enough, needed)
        for status in statuses:
            note_fullness(self.registrations, status)
        found = usable(statuses, lost)
        found.others = others
        found.addresses = {a.member: a for a in map(self.address, records)}
        return found

    def _drawn(
        self, exclude: Collection[str], at_most: int | None, among: Sequence[str] | None
    ) -> tuple[list[BookieRecord], list[str]]:
        """Return the records of bookies drawn by chance, and the ids of the others."""
        others: list[str] = []

        def chosen(names: Sequence[str]) -> Sequence[str]:
            free = [name for name in names if name not in exclude and name not in self.left_out]
            if at_most is None or len(free) <= at_most:
                return free
            drawn = sorted(free, key=lambda _: environment.draw())
            others.extend(drawn[at_most:])
            return drawn[:at_most]

        if among is None:
            answers = self.store.get_some(layout.BOOKIES_PREFIX, chosen)
        else:
            answers = self.store.get_each(layout.BOOKIES_PREFIX, chosen(among))
        found = self._noting_domains(self.registrations.of_all(answers, leave_out))
        return [record for record in found.values() if not record.is_removed], others

    def _noting_domains(self, found: dict[str, BookieRecord]) -> dict[str, BookieRecord]:
        domains = environment.the_one(HangMemory).domains(self.cluster_id)
        for name, record in found.items():
            domains[name] = "" if record.is_removed else record.domain
        return found

    def in_other_domains(self, names: Sequence[str], used: Collection[str]) -> list[str]:
        """Return the bookies among ``names`` whose failure domains are not ``used``.

        This process remembers domains. It reads the records of at most ``DOMAINS_READ_MAX`` bookies
        that it has not met, drawn by chance; it counts the others as in used domains.
        """
        domains = environment.the_one(HangMemory).domains(self.cluster_id)
        unknown = [name for name in names if name not in domains]
        if unknown:
            drawn = sorted(unknown, key=lambda _: environment.draw())[:DOMAINS_READ_MAX]
            answers = self.store.get_each(layout.BOOKIES_PREFIX, drawn)
            self._noting_domains(self.registrations.of_all(answers, leave_out))
        return [name for name in names if domains.get(name) and domains[name] not in used]

    def note_failure(self, member: Member) -> None:
        """Note that a writer could not use a bookie; placement avoids it after some failures."""
        self._quarantine.note_failure(member, environment.monotonic())

    def suspects(self) -> frozenset[str]:
        """Bookies that failed so often lately that placement takes them last."""
        return self._quarantine.bookie_ids(environment.monotonic())

    @property
    def _quarantine(self) -> Quarantine:
        return environment.the_one(HangMemory).quarantine(self.cluster_id)

    def _look_at(self, record: BookieRecord) -> Callable[[], BookieStatus]:
        return partial(look_at, record, self.address(record))

    def add_bookie(
        self,
        bookie_id: str,
        url: str,
        *,
        accepts_risk: bool = False,
        labels: object = (),
        store: str = "",
    ) -> BookieRecord:
        """Make the empty place at ``url`` a bookie of this cluster and register it.

        Finishes the work of a client that was killed.

        Args:
            bookie_id: empty for the next free id.
            accepts_risk: allow storage that might lose data; the record says so.
            labels: of the bookie, as ``arguments.labels`` takes them.
            store: name of the object store that ``url`` is in.

        Raises:
            InvalidRequestError: the id or the place is taken, or unsuitable, or a label is not
                valid, or this machine does not know the store; nothing was made.
        """
        checked, place = arguments.labels(labels), with_store(url, store)
        return self.register(self.admit(bookie_id, place, accepts_risk=accepts_risk), checked)

    def admit(self, bookie_id: str, url: str, *, accepts_risk: bool = False) -> "NewBookie":
        """Check the place, as the first half of ``add_bookie``, with the same errors."""
        from bkspark.cluster import admission

        return admission.admit(self.site(), url, bookie_id, accepts_risk=accepts_risk)

    def site(self) -> "Site":
        """What a new place is checked against."""
        from bkspark.cluster import admission

        unreadable = set[str]()
        known = self._registered(leave_out_into(unreadable))
        removed = frozenset(name for name, record in known.items() if record.is_removed)
        bookies = {name: record for name, record in known.items() if name not in removed}
        return admission.Site(
            self.cluster_id, self.store.uri, bookies, removed, frozenset(unreadable), self.group
        )

    def register(self, new: "NewBookie", labels: Labels) -> BookieRecord:
        """Make the place a bookie with these labels, as the second half of ``add_bookie``.

        Raises:
            LedgerExistsError: another client registered the id meanwhile.
        """
        new.place.format(new.cookie)
        record = replace(new.record, labels=labels)
        return self.registrations.create(record.bookie_id, record).value

    def _read_identity(self, wanted: str) -> ClusterRecord:
        stored = self.store.get(layout.CLUSTER_KEY)
        if stored is None:
            raise InvalidRequestError(
                f"there is no cluster at {shown_url(self.store.uri)}",
                hint=f"run: bkspark init {shown_url(self.store.uri)}",
            )
        try:
            found = cluster_format.decode_cluster(stored.value)
        except CorruptDataError as error:
            raise error.reworded(error.args[0], hint=cluster_format.BRING_BACK) from error
        if wanted not in ("", found.cluster_id):
            raise contract.another_store(shown_url(self.store.uri))
        return found


def init_cluster(
    metadata_uri: str,
    bookie_urls: Sequence[str],
    *,
    accepts_risk: bool = False,
    group: str | int | None = None,
    labels: object = (),
    store: str = "",
) -> None:
    """Make a new cluster with the given bookies, or make nothing if a check fails.

    Finishes the work of a client that was killed.

    Args:
        accepts_risk: allow storage that might lose data; the records say so.
        group: name or id of a group whose members share the folders and files; without a group one
            user owns them (``bkspark.storage.access``).
        labels: of each new bookie, as ``arguments.labels`` takes them.
        store: name of the object store that all bookies are in; a URL may name another one itself.

    Raises:
        InvalidRequestError: a place is taken, missing, named twice or unsuitable, there is no such
            group, a label is not valid, or this machine does not know a store.
    """
    from bkspark.cluster import admission

    checked = arguments.labels(labels)
    group_id = None if group is None else access.group_id(group)
    metadata_uri = canonical(metadata_uri)
    bookie_urls = [with_store(url, store) for url in bookie_urls]
    store_uri = metadata_stores.open_store(metadata_uri).uri
    admission.require_apart([store_uri, *bookie_urls])
    wanted = {f"bookie-{number}": url for number, url in enumerate(bookie_urls, start=1)}
    if metadata_stores.has_record(metadata_uri, layout.CLUSTER_KEY):
        with Cluster(metadata_uri) as cluster:
            left = _left_to_make(cluster, wanted, group_id)
            new = admission.admit_each(cluster.site(), left, accepts_risk=accepts_risk)
    else:
        risk = admission.storage_risk(store_uri, store_uri, is_accepted=accepts_risk)
        record = ClusterRecord(environment.token(), environment.now_ms(), risk, group_id)
        site = admission.Site(record.cluster_id, store_uri, {}, group=group_id)
        new = admission.admit_each(site, wanted, accepts_risk=accepts_risk)
        make_cluster(metadata_uri, record)
    with Cluster(metadata_uri) as cluster:
        for bookie in new:
            cluster.register(bookie, checked)


def _left_to_make(cluster: Cluster, wanted: Mapping[str, str], group: int | None) -> dict[str, str]:
    """The remaining work of a killed ``init``, as bookie ids and URLs.

    Raises:
        InvalidRequestError: the cluster was made by another command, or nothing is left.
    """
    urls = {bookie_id: record.place for bookie_id, record in cluster.bookies().items()}
    left = {bookie_id: url for bookie_id, url in wanted.items() if bookie_id not in urls}
    if not left or not urls.items() <= wanted.items():
        what = " and all its bookies are there" if urls == wanted else " is one"
        raise InvalidRequestError(
            f"no cluster can be made at {shown_url(cluster.store.uri)}: it{what} already",
            hint="use it (`bkspark bookie add URL` adds a bookie), or choose another place",
        )
    if group != cluster.group:
        raise InvalidRequestError(
            f"the cluster at {shown_url(cluster.store.uri)} was begun with another `--group`, "
            "or without",
            hint="finish it with the same `--group`, or choose another place",
        )
    return left


def _ledgers(store: MetadataStore, cluster_id: str) -> Records[LedgerMetadata]:
    return Records(
        store,
        cluster_id,
        lambda name: layout.ledger_key(int(name)),
        ledger_metadata.encode,
        lambda name, data: ledger_metadata.decode(int(name), data),
    )
