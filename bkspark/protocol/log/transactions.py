"""The last versions of the applications that wrote to a log, as far as a log remembers them.

Each record of a log, of a ledger and of an unbounded log's rows repeats the versions, so their
number is bounded. Records of an unbounded log's rows, and of its ledger, keep fewer versions: a
takeover of the ledger first puts the versions into the log's record.

Rule 1. Applications stand in the order of their last commit. The newest stand by name.

Rule 2. Of older applications only a digest of the name remains, with the version. The digest still
tells whether a version is in the log, but not the name.

Rule 3. Of still older applications only the number remains. If such an application returns, the log
cannot tell the application from a new application. A query can be told apart, unless its batch is
its first: a new query begins with batch 0.

Rule 4. Streaming queries are counted apart, so other applications never displace a query. A query
that has committed to the log lately, or is running, is among the newest.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from bkspark.errors import InvalidRequestError, OutcomeUnknownError
from bkspark.protocol.ledger.record import Transaction

NAMED_MAX = 128
"""Applications kept by name. Each record of an unbounded log repeats all, so they are few."""

QUERIES_MAX = 256
"""Streaming queries kept by name, in addition to the applications."""

DIGESTS_MAX = 10_000
"""Applications kept by the digests of their names: some 210 kB in the log's record."""

TAIL_DIGESTS_MAX = 1_000
"""The same in each record of an unbounded log's rows."""

QUERY_DIGESTS_MAX = 1_000
"""Streaming queries kept by the digests of their names, in every record."""

QUERY = "stream/"
"""Prefix of a query's name among the names of applications."""

_FORGOTTEN = {False: "#", True: f"#{QUERY}"}
"""The keys for the numbers of forgotten applications and of forgotten queries."""

_COUNTERS = frozenset(_FORGOTTEN.values())

Transactions = Mapping[str, int]


def require_of_application(transaction: Transaction | None) -> None:
    """Refuse a name reserved for queries or for digests of names.

    Raises:
        InvalidRequestError: the name begins with a reserved prefix.
    """
    if transaction is not None and transaction.app_id.startswith((QUERY, "#")):
        raise InvalidRequestError(
            f"txnAppId must not begin with {QUERY!r} or '#', as {transaction.app_id[:40]!r} does",
            hint="give the application another name",
        )


DIGEST_LENGTH = 16
"""Hexadecimal digits of a digest."""


def digest_of(app_id: str) -> str:
    """Return the digest stored in place of the name (rule 2)."""
    prefix = prefix_of(of_queries=app_id.startswith(QUERY))
    return f"{prefix}{sha256(app_id.encode()).hexdigest()[:DIGEST_LENGTH]}"


def prefix_of(*, of_queries: bool) -> str:
    """Return the prefix of digests."""
    return _FORGOTTEN[of_queries]


@dataclass(frozen=True, slots=True)
class TransactionKeys:
    """The keys of all applications, or of all queries; the oldest first."""

    named: list[str]
    digests: list[str]


def kinds_of(transactions: Transactions) -> tuple[TransactionKeys, TransactionKeys]:
    """Return applications and queries, found in a single pass: there may be thousands."""
    applications, queries = TransactionKeys([], []), TransactionKeys([], [])
    length, prefix = 1 + DIGEST_LENGTH, _FORGOTTEN[True]
    for key in transactions:
        if key[:1] != "#":
            (queries if key.startswith(QUERY) else applications).named.append(key)
        elif len(key) == length and not key.startswith(prefix):  # the common case, answered faster
            applications.digests.append(key)
        elif key not in _COUNTERS:
            (queries if key.startswith(prefix) else applications).digests.append(key)
    return applications, queries


def is_name(key: str) -> bool:
    """Whether ``key`` is an application's name, neither a digest nor a number of forgotten."""
    return not key.startswith("#")


def is_digest(key: str) -> bool:
    """Whether ``key`` is the digest of a name, neither a name nor a number of forgotten."""
    return not is_name(key) and key not in _COUNTERS


def last_version(transactions: Transactions, app_id: str) -> int | None:
    """Return the last known version of an application, or None."""
    version = transactions.get(app_id)
    return transactions.get(digest_of(app_id)) if version is None else version


def has_committed(transactions: Transactions, transaction: Transaction | None) -> bool:
    """Whether this version of the application, or a later version, is in the log already.

    Raises:
        OutcomeUnknownError: the log may have forgotten the query (rule 3).
    """
    if transaction is None:
        return False
    return version_before(transactions, transaction) >= transaction.version


def version_before(transactions: Transactions, transaction: Transaction) -> int:
    """Return the last known version of the transaction's application; -1 if unknown.

    Raises:
        OutcomeUnknownError: the log may have forgotten the query (rule 3).
    """
    last = last_version(transactions, transaction.app_id)
    is_query = transaction.app_id.startswith(QUERY)
    forgotten = forgotten_count(transactions, of_queries=True)
    if last is None and is_query and transaction.version > 0 and forgotten:
        raise OutcomeUnknownError(
            f"it is not known whether micro-batch {transaction.version} of query "
            f"{transaction.app_id.removeprefix(QUERY)} is in the log: the log has forgotten "
            f"the {forgotten:,} queries that had not written for the longest time, and this "
            "may be one of them",
            hint="look whether its rows are in the log, then start the query with a new checkpoint",
        )
    return -1 if last is None else last


def forgotten_count(transactions: Transactions, *, of_queries: bool) -> int:
    """Return how many applications, or how many queries, the log has forgotten for good."""
    return transactions.get(_FORGOTTEN[of_queries], 0)


def listed(transactions: Transactions) -> dict[str, int]:
    """Return the transactions known by name or by digest, without the forgotten numbers."""
    return {key: version for key, version in transactions.items() if key not in _COUNTERS}


def remembering(
    transactions: Transactions, done: Transactions, *, is_of_tail: bool = False
) -> dict[str, int]:
    """Return ``transactions`` with the ``done`` ones as the newest; bounded.

    Args:
        is_of_tail: whether the result is for a record of rows. The log's record keeps more.
    """
    found = dict(transactions)
    has_digests = not all(map(is_name, done))
    names = {digest_of(name): name for name in filter(is_name, found)} if has_digests else {}
    for given, version in done.items():
        if given in _COUNTERS:
            found[given] = max(version, found.get(given, 0))
            continue
        key = names.get(given, given)  # a digest and its name must not both have a version
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
    """Return only the number of forgotten queries, for a deleted log."""
    key = _FORGOTTEN[True]
    return {key: transactions[key]} if key in transactions else {}


def known_queries(transactions: Transactions) -> list[str]:
    """Return the ids of the queries known by name, then the digests of other queries."""
    _, queries = kinds_of(transactions)
    return [*(key.removeprefix(QUERY) for key in queries.named), *queries.digests]


def _shrink(
    found: dict[str, int], kind: TransactionKeys, most: int, digests_most: int, *, counter: str
) -> None:
    """Replace the oldest names of a kind by digests, and drop digests (rules 1 to 3).

    Args:
        counter: key for the number of dropped digests; empty if the log's record keeps the digests.
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
