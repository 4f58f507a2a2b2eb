"""A journal on one bookie, read by pages, however long it is.

Only where pages begin is remembered. A page is read, checked and decoded when an entry in it is
wanted; what lies in front of it is walked by the checked lengths in the frames' prefixes, so large
records are passed without being read. What is appended later is found from where the walk ended,
and what lies near the end of a long journal by going back from there.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bkspark.bookie.contract import BookieRoot, ReadableRoot
from bkspark.client.journals.journal_folder import journal_size, read_journal
from bkspark.format import journal
from bkspark.format.digest import Digester
from bkspark.format.journal import Tail
from bkspark.protocol.record import AddRecord

PAGE_BYTES = 2**20
"""What is read at once, if no single record is longer."""

WALK_BYTES = 64 * 1024

CLAIMED_BYTES_MAX = 64 * 2**20
"""A damaged record that claims to be longer is not passed by its word."""

STEPS_BACK = 64
"""How far an entry is looked for from the journal's end before the walk begins at its start."""


@dataclass(frozen=True, slots=True)
class StoredGroup:
    """A good record and the messages of those of its parts that are stored with it, by stripe."""

    record: AddRecord
    messages: Mapping[int, bytes]


@dataclass(frozen=True, slots=True)
class Page:
    """Neighbouring groups of one journal, ascending.

    Attributes:
        byte_count: of the journal.
        problem: what is wrong with the bytes between the groups or behind them; may be empty.
        is_cut: the journal ends here in an incomplete record, perhaps one that is being appended.
    """

    groups: tuple[StoredGroup, ...]
    byte_count: int
    problem: str = ""
    is_cut: bool = False

    def group_of(self, entry_id: int) -> StoredGroup | None:
        """The group with ``entry_id``, if it is here."""
        at = bisect_right(self.groups, entry_id, key=lambda g: g.record.first_entry_id) - 1
        if at >= 0 and entry_id <= self.groups[at].record.last_entry_id:
            return self.groups[at]
        return None


@dataclass(frozen=True, slots=True)
class Mark:
    """A frame begins at byte ``position`` of a journal, and its record at ``first_entry_id``.

    Attributes:
        name: of the journal.
    """

    name: str
    position: int
    first_entry_id: int


class JournalPages:
    """Finds entries in one journal.

    Args:
        name: of the journal on its bookie.
        start: where to begin; what lies in front of it is walked only if it is wanted.

    Attributes:
        progress: grows with every step of a long walk.
    """

    def __init__(
        self, name: str, digester: Digester, *, ledger_id: int, start: Mark | None = None
    ) -> None:
        self.name = name
        self.progress = 0
        self._digester = digester
        self._ledger_id = ledger_id
        self._begin_at(start)

    def _begin_at(self, start: Mark | None) -> None:
        self._end = start.position if start else 0
        self._last = start.first_entry_id - 1 if start else -1
        self._marks: list[Mark] = [start] if start else []
        self._blocked: tuple[int | None, Page] | None = None

    @property
    def marks(self) -> tuple[Mark, ...]:
        """Where the pages walked so far begin."""
        return tuple(self._marks)

    def page_of(self, root: BookieRoot, entry_id: int) -> Page | None:
        """The page that ``entry_id`` is on if it is in this journal at all.

        Raises:
            BookieUnavailableError: the bookie gives no sure answer.
        """
        self._go_near(root, entry_id)
        if entry_id > self._last:
            page = self._next_page(root)
            if page is None or entry_id <= self._last:
                return page
            self.walk(root, entry_id)
            if entry_id > self._last:
                return self._next_page(root) or page
        return self._page(root, self._index_of(entry_id))

    def in_order(self, root: ReadableRoot) -> Iterator[Page]:
        """The pages that were not walked yet, up to where the journal ends or cannot be passed.

        Raises:
            CorruptDataError: the journal is gone.
            BookieUnavailableError: the bookie gives no sure answer.
        """
        while self._blocked is None and (page := self._next_page(root)) is not None:
            yield page

    def first_after(self, root: BookieRoot, entry_id: int) -> int | None:
        """The first entry of the first good record that begins behind ``entry_id``."""
        self._go_near(root, entry_id)
        passed = entry_id
        while passed <= max(self._last, entry_id):
            passed = max(self._last, entry_id) + 1
            self.walk(root, passed)
            for index in range(self._index_of(entry_id), len(self._marks)):
                page = self._page(root, index)
                for group in page.groups if page else ():
                    if group.record.first_entry_id > entry_id:
                        return group.record.first_entry_id
        return None

    def _go_near(self, root: BookieRoot, entry_id: int) -> None:
        """Begin where ``entry_id`` is not far, or at the start of the journal."""
        if not self._end and entry_id > 0:
            self._begin_at(self._mark_near_end(root, entry_id))
        elif self._marks and entry_id < self._marks[0].first_entry_id and self._marks[0].position:
            self._begin_at(None)

    def _mark_near_end(self, root: BookieRoot, entry_id: int) -> Mark | None:
        """A frame near the journal's end that begins at or in front of ``entry_id``."""
        end = journal_size(root, self.name)
        for _ in range(STEPS_BACK):
            if end <= WALK_BYTES:
                return None
            begin = self._step_back(root, end)
            if begin is None:
                return None
            head = self._head_at(root, begin)
            if head is not None and head.first_entry_id <= entry_id:
                return Mark(self.name, begin, head.first_entry_id)
            end = begin
        return None

    def _step_back(self, root: BookieRoot, end: int) -> int | None:
        """Where a frame begins, one or some before the one that ends at byte ``end``."""
        base = end - WALK_BYTES
        data = read_journal(root, self.name, base, WALK_BYTES)
        at = len(data)
        while at > 0:
            length = journal.last_frame_length(data[max(0, at - 64) : at], base + at)
            if length is None:
                return None if at == len(data) else base + at
            if length > at:
                return base + at - length if at == len(data) else base + at
            at -= length
        return base

    def _head_at(self, root: ReadableRoot, position: int) -> AddRecord | None:
        data = read_journal(root, self.name, position, WALK_BYTES)
        if journal.frame_length(data, 0, position=position) is None:
            return None
        head = journal.head_length(data, 0)
        if head > len(data):
            data = read_journal(root, self.name, position, head)
        return journal.decode_head(
            data, 0, self._digester, ledger_id=self._ledger_id, position=position
        )

    def walk(self, root: BookieRoot, entry_id: int) -> None:
        """Go on until ``entry_id`` is passed or the journal ends, reading as little as possible."""
        while self._last < entry_id and self._blocking_page(root) is None:
            self.progress += 1
            data = read_journal(root, self.name, self._end, WALK_BYTES)
            frames = list(self._frames(data, self._end))
            if frames:
                self._remember(self._head(data, 0))
                self._pass(self._last_head(data, frames), sum(frames[-1]))
            elif not self._pass_long_frame(root, data):
                return

    def _pass_long_frame(self, root: BookieRoot, data: bytes) -> bool:
        """Whether a frame longer than ``data``, its beginning, was all there and was passed."""
        length = self._length_at(root, data, self._end)
        if length is None or self._end + length > journal_size(root, self.name):
            return False
        record = self._head_at(root, self._end)
        self._remember(record, is_long=length > PAGE_BYTES)
        self._pass(record, length)
        return True

    def _next_page(self, root: ReadableRoot) -> Page | None:
        """The page behind what was walked; None if the journal ends there."""
        blocking = self._blocking_page(root)
        if blocking is not None:
            return blocking
        begin, asked = self._end, PAGE_BYTES
        data = read_journal(root, self.name, begin, asked)
        if not data:
            return None
        length = self._length_at(root, data, begin)
        if length is not None and length > asked:
            asked = length
            data = read_journal(root, self.name, begin, asked)
        frames = list(self._frames(data, begin))
        if frames:
            self._remember(self._head(data, 0), is_long=asked > PAGE_BYTES)
            self._pass(self._last_head(data, frames), sum(frames[-1]))
        page = self._decoded(data, frames, begin)
        rest = data[self._end - begin :]
        goes_on = self._length_at(root, rest, self._end) is not None
        ended = self._with_end(page, rest, is_end=len(data) < asked, goes_on=goes_on)
        if ended is not page:
            self._blocked = (journal_size(root, self.name), replace(ended, groups=()))
        return ended

    def _blocking_page(self, root: ReadableRoot) -> Page | None:
        """What is behind the walk, if it could not go on there and the journal is as it was."""
        if self._blocked is not None and journal_size(root, self.name) == self._blocked[0]:
            return self._blocked[1]
        return None

    def _length_at(self, root: ReadableRoot, data: bytes, position: int) -> int | None:
        """Length of the frame that begins with ``data``; None if there is none to be believed.

        What claims to be long must have a head that says so.
        """
        length = journal.frame_length(data, 0, position=position)
        if length is None or length <= CLAIMED_BYTES_MAX:
            return length
        return None if self._head_at(root, position) is None else length

    def _with_end(self, page: Page, rest: bytes, *, is_end: bool, goes_on: bool) -> Page:
        """``page``, and what is wrong if the walk cannot go on behind it."""
        if not rest or (not is_end and (goes_on or len(rest) < journal.PREFIX_BYTES)):
            return page
        tail = Tail.INCOMPLETE if goes_on else self._content(rest, self._end).tail
        is_cut = tail is Tail.INCOMPLETE and not page.problem
        return replace(page, problem=page.problem or f"ends {tail.value}", is_cut=is_cut)

    def _page(self, root: BookieRoot, index: int) -> Page | None:
        if not 0 <= index < len(self._marks):
            return None
        begin = self._marks[index].position
        is_last = index + 1 == len(self._marks)
        end = self._end if is_last else self._marks[index + 1].position
        data = read_journal(root, self.name, begin, end - begin)
        return self._decoded(data, list(self._frames(data, begin)), begin)

    def _index_of(self, entry_id: int) -> int:
        return max(0, bisect_right(self._marks, entry_id, key=lambda m: m.first_entry_id) - 1)

    def _frames(self, data: bytes, position: int) -> Iterator[tuple[int, int]]:
        """(where in ``data``, length) of the frames that are whole, one behind the other."""
        begin = 0
        while length := journal.frame_length(data, begin, position=position + begin):
            if begin + length > len(data):
                return
            yield begin, length
            begin += length

    def _remember(self, record: AddRecord | None, *, is_long: bool = False) -> None:
        """Note where the walk ended, at ``record``, as the beginning of a page, if worth it."""
        is_far = not self._marks or self._end >= self._marks[-1].position + PAGE_BYTES
        if record is not None and (is_far or is_long):
            self._marks.append(Mark(self.name, self._end, record.first_entry_id))

    def _pass(self, record: AddRecord | None, length: int) -> None:
        """Let the walk end ``length`` bytes later, behind ``record``."""
        if record is not None:
            self._last = max(self._last, record.last_entry_id)
        self._end += length

    def _last_head(self, data: bytes, frames: Sequence[tuple[int, int]]) -> AddRecord | None:
        heads = (self._head(data, begin) for begin, _ in reversed(frames))
        return next((record for record in heads if record is not None), None)

    def _head(self, data: bytes, begin: int) -> AddRecord | None:
        return journal.decode_head(
            data, begin, self._digester, ledger_id=self._ledger_id, position=self._end + begin
        )

    def _decoded(self, data: bytes, frames: list[tuple[int, int]], position: int) -> Page:
        groups: list[StoredGroup] = []
        problem = ""
        for begin, length in frames:
            piece = data[begin : begin + length]
            content = self._content(piece, position + begin)
            for frame in content.frames:
                if not frame.record.is_confirmation:
                    parts = frame.parts.items()
                    messages = {stripe: piece[at : at + size] for stripe, (at, size) in parts}
                    groups.append(StoredGroup(frame.record, messages))
            if content.tail is not Tail.CLEAN:
                problem = f"is damaged at byte {position + begin}"
        return Page(tuple(groups), len(data), problem)

    def _content(self, data: bytes, position: int) -> journal.JournalContent:
        return journal.decode_journal(
            data, self._digester, ledger_id=self._ledger_id, position=position
        )
