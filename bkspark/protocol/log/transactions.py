"""The last version of each application that wrote to a log, as much as a log remembers of them.

Each record of a log, of a ledger and of an unbounded log's rows repeats these, so they are bounded.
Those of an unbounded log's rows and of its ledger have fewer: whoever takes the ledger over puts
them into the log's record first.

Rule 1. Applications stand in the order of their last commit. The newest are there by name.

Rule 2. Of those before them a digest of the name is left, with the version. It still tells whether
a version is in the log, but not the name.

Rule 3. Of those before these only their number is left. An application of them that comes again
cannot be told from a new one. A query can, unless its batch is its first: a new query begins with
batch 0.

Rule 4. Streaming queries are counted apart, so no number of other applications displaces one. A
query that has committed to the log lately, or is running, is among the newest.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256

from bkspark.errors import InvalidRequestError, OutcomeUnknownError
from bkspark.protocol.ledger.record import Transaction

NAMED_MAX = 128
"""Applications by name. Each record of an unbounded log has them all, so they are few."""

QUERIES_MAX = 256
"""Streaming queries by name, apart from these."""

DIGESTS_MAX = 10_000
"""Applications by the digests of their names: some 210 kB in the log's record."""

TAIL_DIGESTS_MAX = 1_000
"""The same in each record of an unbounded log's rows."""

QUERY_DIGESTS_MAX = 1_000
"""Streaming queries by the digests of their names, in every record."""

QUERY = "stream/"
"""What the name of a query begins with, among those of applications."""

_FORGOTTEN = {False: "#", True: f"#{QUERY}"}
"""Under what the number of those stands that are forgotten: of applications, and of queries."""

_COUNTERS = frozenset(_FORGOTTEN.values())

Transactions = Mapping[str, int]


def require_of_application(transaction: Transaction | None) -> None:
    """Refuse a name that an application must not take.

    Raises:
        InvalidRequestError: names of queries and digests of names are spelled like it.
    """
    if transaction is not None and transaction.app_id.startswith((QUERY, "#")):
        raise InvalidRequestError(
            f"txnAppId must not begin with {QUERY!r} or '#', as {transaction.app_id[:40]!r} does",
            hint="give the application another name",
        )


DIGEST_LENGTH = 16
"""Hexadecimal digits of a digest."""


def digest_of(app_id: str) -> str:
    """What is left of the name in place of it (rule 2)."""
    prefix = prefix_of(of_queries=app_id.startswith(QUERY))
    return f"{prefix}{sha256(app_id.encode()).hexdigest()[:DIGEST_LENGTH]}"


def prefix_of(*, of_queries: bool) -> str:
    """What a digest begins with."""
    return _FORGOTTEN[of_queries]


@dataclass(frozen=True, slots=True)
class Kind:
    """The keys of all applications, or of all queries; the oldest first."""

    named: list[str]
    digests: list[str]


def kinds_of(transactions: Transactions) -> tuple[Kind, Kind]:
    """Applications and queries, in one pass: there may be thousands."""
    applications, queries = Kind([], []), Kind([], [])
    length, prefix = 1 + DIGEST_LENGTH, _FORGOTTEN[True]
    for key in transactions:
        if key[:1] != "#":
            (queries if key.startswith(QUERY) else applications).named.append(key)
        elif len(key) == length and not key.startswith(prefix):  # as most are, and quicker
            applications.digests.append(key)
        elif key not in _COUNTERS:
            (queries if key.startswith(prefix) else applications).digests.append(key)
    return applications, queries


def is_name(key: str) -> bool:
    """Whether ``key`` is an application's name, and neither a digest nor a number of forgotten."""
    return not key.startswith("#")


def last_version(transactions: Transactions, app_id: str) -> int | None:
    """The last version of an application that the log knows of; None if it knows of none."""
    version = transactions.get(app_id)
    return transactions.get(digest_of(app_id)) if version is None else version


def has_committed(transactions: Transactions, transaction: Transaction | None) -> bool:
    """Whether this version of the application, or a later one, is in the log already.

    Raises:
        OutcomeUnknownError: that is not known any more (rule 3).
    """
    if transaction is None:
        return False
    return version_before(transactions, transaction) >= transaction.version


def version_before(transactions: Transactions, transaction: Transaction) -> int:
    """The last version of the transaction's application that the log knows of; -1 for none.

    Raises:
        OutcomeUnknownError: the log may have forgotten it (rule 3).
    """
    last = last_version(transactions, transaction.app_id)
    is_query = transaction.app_id.startswith(QUERY)
    forgotten = forgotten_count(transactions, of_queries=True)
    if last is None and is_query and transaction.version > 0 and forgotten:
        raise OutcomeUnknownError(
            f"whether micro-batch {transaction.version} of query "
            f"{transaction.app_id.removeprefix(QUERY)} is in the log is not known: {forgotten:,} "
            "queries that have not written for the longest time are forgotten, and it may be one",
            hint="look whether its rows are in the log, then start the query with a new checkpoint",
        )
    return -1 if last is None else last


def forgotten_count(transactions: Transactions, *, of_queries: bool) -> int:
    """How many applications the log has forgotten for good, or how many queries."""
    return transactions.get(_FORGOTTEN[of_queries], 0)


def listed(transactions: Transactions) -> dict[str, int]:
    """The transactions that are known by name or by digest, without the numbers of others."""
    return {key: version for key, version in transactions.items() if key not in _COUNTERS}


def remembering(
    transactions: Transactions, done: Transactions, *, is_of_tail: bool = False
) -> dict[str, int]:
    """Return ``transactions`` with what was ``done`` since as the newest; bounded.

    Args:
        is_of_tail: whether they are for a record of rows. The log's record keeps more of them.
    """
    found = dict(transactions)
    has_digests = not all(map(is_name, done))
    names = {digest_of(name): name for name in filter(is_name, found)} if has_digests else {}
    for given, version in done.items():
        if given in _COUNTERS:
            found[given] = max(version, found.get(given, 0))
            continue
        key = names.get(given, given)  # else a digest and its name would say two versions
        last = last_version(found, key) if is_name(key) else found.get(key)
        if last is None or version > last:
            found.pop(digest_of(key) if is_name(key) else key, None)
            found.pop(key, None)
            found[key] = version
    applications, queries = kinds_of(found)
    _shrink(found, queries, QUERIES_MAX, QUERY_DIGESTS_MAX, counter=_FORGOTTEN[True])
    if is_of_tail:
        _shrink(found, applications, NAMED_MAX, TAIL_DIGESTS_MAX, counter="")
    else:
        _shrink(found, applications, NAMED_MAX, DIGESTS_MAX, counter=_FORGOTTEN[False])
    return found


def forgotten_queries(transactions: Transactions) -> dict[str, int]:
    """Return what a log remembers of them alone, as a deleted log does."""
    key = _FORGOTTEN[True]
    return {key: transactions[key]} if key in transactions else {}


def known_queries(transactions: Transactions) -> list[str]:
    """The ids of queries that are known by name, then the digests of others."""
    _, queries = kinds_of(transactions)
    return [*(key.removeprefix(QUERY) for key in queries.named), *queries.digests]


def _shrink(
    found: dict[str, int], kind: Kind, most: int, digests_most: int, *, counter: str
) -> None:
    """Leave of the oldest of a kind only what the bounds allow (rules 1 to 3).

    Args:
        counter: under what the number of those stands that are forgotten; empty if they are not,
            as the log's record has them.
    """
    new = list[str]()
    for name in _oldest(kind.named, most):
        digest = digest_of(name)
        new += [] if digest in found else [digest]
        found[digest] = found.pop(name)
    gone = _oldest([*kind.digests, *new], digests_most)
    for digest in gone:
        del found[digest]
    if gone and counter:
        found[counter] = found.get(counter, 0) + len(gone)


def _oldest(keys: list[str], most: int) -> list[str]:
    return keys[: max(0, len(keys) - most)]


def order_of(transactions: Transactions) -> list[int]:
    """Where each stands among their sorted names: JSON objects have no order. Empty if sorted."""
    places = {name: place for place, name in enumerate(sorted(transactions))}
    order = [places[name] for name in transactions]
    return [] if order == sorted(order) else order


def in_order(transactions: Transactions, order: Iterable[int]) -> dict[str, int]:
    """Return the transactions in the ``order`` that ``order_of`` gave.

    Raises:
        ValueError: it is none of them.
    """
    names, places = sorted(transactions), list(order)
    if places and sorted(places) != list(range(len(names))):
        raise ValueError("the order of the transactions is not one of them")
    return {names[place]: transactions[names[place]] for place in places or range(len(names))}
