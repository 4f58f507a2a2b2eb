"""Every name in the system, one function each, and the rules for names.

On a bookie::

    COOKIE
    ledgers/<shard>/<ledger>/terms/<term>                        fence of the writer before
    ledgers/<shard>/<ledger>/terms/<term>-<token>                a writer's permission
    ledgers/<shard>/<ledger>/journal/<term>-<token>              add records
    ledgers/<shard>/<ledger>/entries/<attempt>-<stripe>.arrow    entry logs
    sanity/<token>                                               test of an agent, for a moment

In the metadata store::

    cluster    counters/ledger    bookies/<bookie>    logs/<name>    ledgers/<ledger>
    cursors/<log>/<name>
    pages/<log>/<page>           older ledgers of a log, whose record names the page
    tierpages/<log>/<page>       segments of a log's tier, or digests of the rows of a segment
    lost/<bookie>                bookies that operators declared lost for ever
    away/<bookie>                since when repairs have found the bookie silent
    open/ledgers                 since when open ledgers were seen unchanged (advisory)
    settled/<verb>               ledgers that a maintenance verb need not look at again (advisory)
    damaged/<bookie>             copies on it that a scrub found damaged
    recoveries/<ledger>          why the ledger's last recovery could not close it: for people
    gone/<page>                  ids of fully removed ledgers: 4,096 of them on a page
    reports/<verb>               when a maintenance verb ran last, and its findings: for people
    reports/agent.<bookie>       when an agent looked at a bookie last, and its space: for people
    leases/<verb>                which process runs a maintenance verb (advisory)
    leases/<verb>.<log>          which process runs it on this log (advisory)
    leases/election.<name>       which process leads (advisory); a row of candidates in ZooKeeper

``<ledger>`` and ``<term>`` are 16 and 8 hex digits, ``<shard>`` the last two of the ledger's,
``<token>`` and ``<attempt>`` 32, ``<page>`` the log's generation in 8 and a token. Names that come
out of storage are hostile input: they pass the same checks before a path is made of them.

A journal, an entry log and a permission have a token of their maker in the name, so no client
overwrites another's (R3, H4). Each term has its own fence, so a late fence does not undo another
(H3).
"""

import re
from functools import lru_cache

from bkspark.errors import InvalidRequestError

COOKIE = "COOKIE"
LEDGERS_FOLDER = "ledgers"
SANITY_FOLDER = "sanity"
LEDGER_ID_MAX = 2**63 - 1
TERM_MAX = 2**32 - 1
STRIPE_MAX = 255

_LOG_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?")
_BOOKIE_ID = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?")
_TOKEN = re.compile(r"[0-9a-f]{32}")
_VERB = re.compile(r"[a-z]{1,32}")
_LEDGER = re.compile(r"[0-7][0-9a-f]{15}")
_SHARD = re.compile(r"[0-9a-f]{2}")
_PAGE = re.compile(r"[0-9a-f]{8,16}-[0-9a-f]{32}")
_ENTRY_LOG = re.compile(r"[0-9a-f]{32}-[0-9]{1,3}\.arrow")
_JOURNAL = re.compile(r"([0-9a-f]{8})-[0-9a-f]{32}")

CLUSTER_KEY = "cluster"
LEDGER_COUNTER_KEY = "counters/ledger"
BOOKIES_PREFIX = "bookies"
LOGS_PREFIX = "logs"
LEDGERS_PREFIX = "ledgers"
LOG_PAGES_PREFIX = "pages"
TIER_PAGES_PREFIX = "tierpages"
CURSORS_PREFIX = "cursors"
LOST_PREFIX = "lost"
DAMAGED_PREFIX = "damaged"
AWAY_PREFIX = "away"
OPEN_LEDGERS_KEY = "open/ledgers"
SETTLED_PREFIX = "settled"
RECOVERIES_PREFIX = "recoveries"
REPORTS_PREFIX = "reports"
LEASES_PREFIX = "leases"
GONE_PREFIX = "gone"
ASIDE_PREFIX = "aside"
"""Of the bytes of a record that an operator set aside, below the record's key."""
GONE_PAGE_LENGTH = 4096


def log_name(name: str) -> str:
    """Return ``name`` if it may name a log."""
    if not _is_log_name(name):
        raise _not_allowed("log", name)
    return name


def _is_log_name(name: object) -> bool:
    return isinstance(name, str) and bool(_LOG_NAME.fullmatch(name)) and ".." not in name


def _not_allowed(of: str, name: object) -> InvalidRequestError:
    shown = name if isinstance(name, str) else repr(name)
    shown = shown if len(shown) <= 40 else f"{shown[:40]}…"
    return InvalidRequestError(
        f"{of} name {shown!r} is not allowed",
        hint="use 1 to 128 ASCII letters, digits, '.', '_' or '-', "
        "with a letter or digit at both ends and no '..'",
    )


def bookie_id(name: str) -> str:
    """Return ``name`` if it may name a bookie."""
    if not isinstance(name, str) or not _BOOKIE_ID.fullmatch(name) or ".." in name:
        raise InvalidRequestError(
            f"bookie id {str(name)[:40]!r} is not allowed",
            hint="use 1 to 64 lower-case letters, digits, '.', '_' or '-'",
        )
    return name


def token(value: str) -> str:
    """Return ``value`` if it is 32 lower-case hex digits."""
    if not _TOKEN.fullmatch(value):
        raise InvalidRequestError(f"{value[:40]!r} is not an id of 32 hex digits")
    return value


def ledger_folder(ledger_id: int) -> str:
    digits = _ledger_digits(ledger_id)
    return f"ledgers/{digits[-2:]}/{digits}"


def shard_of_folder(name: str) -> int | None:
    """Return the shard of a name found in the folder of all ledgers; None if no shard has the
    name.
    """
    digits = name.removesuffix("/")
    return int(digits, 16) if _SHARD.fullmatch(digits) else None


def shard_folder(shard: int) -> str:
    """Return the folder of all ledgers whose id has ``shard``, 0 to 255, as its last byte."""
    return f"ledgers/{shard:02x}"


def ledger_of_folder(name: str) -> int | None:
    """Return the ledger id of a name found in a shard's folder; None if no ledger has the name."""
    digits = name.removesuffix("/")
    return int(digits, 16) if _LEDGER.fullmatch(digits) else None


def terms_folder(ledger_id: int) -> str:
    return f"{ledger_folder(ledger_id)}/terms"


# Each append asks for the same two names.
@lru_cache(maxsize=4096)
def term_marker(ledger_id: int, term: int) -> str:
    """Return the marker that fences the writer of the term before ``term``."""
    return f"{terms_folder(ledger_id)}/{_term_digits(term)}"


@lru_cache(maxsize=4096)
def permission(ledger_id: int, term: int, writer_token: str) -> str:
    """Return the marker of one writer, taken by each bookie before the metadata names the
    bookie.
    """
    return f"{term_marker(ledger_id, term)}-{token(writer_token)}"


def journal_folder(ledger_id: int) -> str:
    return f"{ledger_folder(ledger_id)}/journal"


def journal(ledger_id: int, term: int, writer_token: str) -> str:
    return f"{journal_folder(ledger_id)}/{_term_digits(term)}-{token(writer_token)}"


def journal_term(name: str) -> int:
    """Return the term at the start of the last part of a journal's name; 0 for other names."""
    found = _JOURNAL.fullmatch(name.rpartition("/")[2])
    return int(found[1], 16) if found else 0


def writer_of(name: str) -> tuple[int, str] | None:
    """Return term and token from the name of a permission or a journal; None for other names."""
    found = _JOURNAL.fullmatch(name.rpartition("/")[2])
    return (int(found[1], 16), found[0].partition("-")[2]) if found else None


def is_journal(name: str) -> bool:
    """Return whether ``name``, without a folder, is a journal's; other files there are strange."""
    return "/" not in name and journal_term(name) > 0


def entries_folder(ledger_id: int) -> str:
    return f"{ledger_folder(ledger_id)}/entries"


def entry_log(ledger_id: int, attempt_id: str, stripe: int) -> str:
    if not 0 <= stripe <= STRIPE_MAX:
        raise InvalidRequestError(f"stripe {stripe} is out of range")
    return f"{entries_folder(ledger_id)}/{token(attempt_id)}-{stripe}.arrow"


def is_entry_log(name: str) -> bool:
    """Return whether the last part of a name is an entry log's."""
    return _ENTRY_LOG.fullmatch(name) is not None


def bookie_key(name: str) -> str:
    return f"{BOOKIES_PREFIX}/{bookie_id(name)}"


def log_key(name: str) -> str:
    return f"{LOGS_PREFIX}/{log_name(name)}"


def log_page_name(generation: int, page_token: str) -> str:
    return f"{generation:08x}-{token(page_token)}"


def log_page(name: str) -> str:
    """Return ``name`` if it may name a page of a log."""
    if not isinstance(name, str) or not is_log_page(name):
        raise InvalidRequestError(f"{str(name)[:40]!r} is not a page of a log")
    return name


def is_log_page(name: str) -> bool:
    return _PAGE.fullmatch(name) is not None


def log_page_key(log: str, page: str) -> str:
    return f"{LOG_PAGES_PREFIX}/{log_name(log)}/{log_page(page)}"


def tier_page_key(log: str, page: str) -> str:
    return f"{TIER_PAGES_PREFIX}/{log_name(log)}/{log_page(page)}"


def cursors_prefix(log: str) -> str:
    return f"{CURSORS_PREFIX}/{log_name(log)}"


def cursor_key(log: str, name: str) -> str:
    return f"{cursors_prefix(log)}/{cursor_name(name)}"


def cursor_name(name: str) -> str:
    """Return ``name`` if it may name a cursor: the rule is the same as for logs."""
    if not _is_log_name(name):
        raise _not_allowed("cursor", name)
    return name


def ledger_key(ledger_id: int) -> str:
    return f"{LEDGERS_PREFIX}/{_ledger_digits(ledger_id)}"


def lost_key(name: str) -> str:
    return f"{LOST_PREFIX}/{bookie_id(name)}"


def damaged_key(name: str) -> str:
    return f"{DAMAGED_PREFIX}/{bookie_id(name)}"


def away_key(name: str) -> str:
    return f"{AWAY_PREFIX}/{bookie_id(name)}"


def recovery_key(ledger_id: int) -> str:
    return f"{RECOVERIES_PREFIX}/{_ledger_digits(ledger_id)}"


def gone_key(page: int) -> str:
    """Return the key of page ``page`` of removed ledgers, with ``GONE_PAGE_LENGTH`` ids."""
    return f"{GONE_PREFIX}/{_ledger_digits(page)}"


def report_key(name: str) -> str:
    """Return the key of a report: of a verb, or of an agent of one bookie (``agent.<bookie>``)."""
    return f"{REPORTS_PREFIX}/{_verb_of(name)}"


def settled_key(verb: str) -> str:
    return f"{SETTLED_PREFIX}/{_verb(verb)}"


def lease_key(name: str) -> str:
    """Return the key of a lease: of a verb (``repair``), or on one log (``offload.<log>``)."""
    return f"{LEASES_PREFIX}/{_verb_of(name)}"


def _verb_of(name: str) -> str:
    """Return ``name`` if it may be a verb, or a verb and what it works on."""
    verb, of, what = name.partition(".")
    return f"{_verb(verb)}{of}{log_name(what) if of else ''}"


def _verb(name: str) -> str:
    if not _VERB.fullmatch(name):
        raise InvalidRequestError(f"{name[:40]!r} is not a maintenance verb")
    return name


def parse_ledger_key(name: str) -> int:
    """Return the ledger id of the last part of a ledger's key."""
    if not re.fullmatch(r"[0-9a-f]{16}", name):
        raise InvalidRequestError(f"{name[:40]!r} is not a ledger's key")
    return int(name, 16)


def _ledger_digits(ledger_id: int) -> str:
    if not 0 <= ledger_id <= LEDGER_ID_MAX:
        raise InvalidRequestError(
            f"ledger id {ledger_id} is out of range", hint="the first ledger is 0"
        )
    return f"{ledger_id:016x}"


def _term_digits(term: int) -> str:
    if not 1 <= term <= TERM_MAX:
        raise InvalidRequestError(f"term {term} is out of range")
    return f"{term:08x}"
