"""The pages of one log's tier: older segments, and digests of the rows of segments.

A page has a random name, is durable before a record names it, and never changes.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator
from typing import TypeAlias

from bkspark import environment
from bkspark.cluster.records import Records
from bkspark.errors import CorruptDataError
from bkspark.format import layout, tier_digests, tier_record
from bkspark.format.tier_digests import DigestsPage
from bkspark.metadata.contract import MetadataStore
from bkspark.protocol.log.tier import SegmentsPage, Tier, TierSegment

_Named: TypeAlias = tuple[str, SegmentsPage]
_NamedDigests: TypeAlias = tuple[str, DigestsPage]


REMEMBERED_MAX = 512


class SegmentsMemory:
    """The pages of segments last seen by this process: retention walks them at each roll."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pages: OrderedDict[tuple[str, ...], SegmentsPage] = OrderedDict()

    def get(self, key: tuple[str, ...]) -> SegmentsPage | None:
        with self._lock:
            return self._pages.get(key)

    def note(self, key: tuple[str, ...], page: SegmentsPage) -> None:
        with self._lock:
            self._pages[key] = page
            while len(self._pages) > REMEMBERED_MAX:
                self._pages.popitem(last=False)


class TierPages:
    """Reads and makes the pages of one log's tier.

    Raises (every method):
        CorruptDataError: a page is missing or damaged.
        OutcomeUnknownError: the metadata store gave no sure answer.
    """

    def __init__(self, store: MetadataStore, cluster_id: str, log_name: str) -> None:
        self._log_name = log_name
        self._place = (store.uri, cluster_id, log_name)

        def key(name: str) -> str:
            return layout.tier_page_key(log_name, name)

        self._segments: Records[_Named] = Records(
            store,
            cluster_id,
            key,
            lambda made, _nonce: tier_record.encode_page(log_name, *made),
            lambda name, data: (name, tier_record.decode_page(log_name, name, data)),
        )
        self._digests: Records[_NamedDigests] = Records(
            store,
            cluster_id,
            key,
            lambda made, _nonce: tier_digests.encode(log_name, *made),
            lambda name, data: (name, tier_digests.decode(log_name, name, data)),
        )

    def make_segments(self, name: str, page: SegmentsPage) -> None:
        """Store a new page of segments, durably."""
        self._segments.create(name, (name, page))

    def make_digests(self, name: str, page: DigestsPage) -> None:
        """Store a new page of digests, durably."""
        self._digests.create(name, (name, page))

    def segments(self, name: str) -> SegmentsPage:
        memory = environment.the_one(SegmentsMemory)
        known = memory.get((*self._place, name))
        if known is None:
            seen = self._segments.get(name)
            if seen is None:
                raise self._missing(name)
            known = seen.value[1]
            memory.note((*self._place, name), known)
        return known

    def digests(self, name: str) -> DigestsPage:
        seen = self._digests.get(name)
        if seen is None:
            raise self._missing(name)
        return seen.value[1]

    def every_segment(self, tier: Tier) -> Iterator[TierSegment]:
        """Yield all segments, newest first; read each page when it is needed."""
        yield from reversed(tier.segments)
        older = tier.older
        while older:
            page = self.segments(older)
            yield from reversed(page.segments)
            older = page.older

    def _missing(self, name: str) -> CorruptDataError:
        return CorruptDataError(
            f"page {name} of the tier of log {self._log_name!r} is missing",
            hint="bring the metadata store back as it was",
        )
