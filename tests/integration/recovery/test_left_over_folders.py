"""RB-34 on real folders: what older terms left over is read by nobody, whatever befalls bookies.

Each writer leaves entries behind the end that is recovered from it, on bookies of its own and, in
journals that it opens anew, also while later ones write. Between takeovers files of those journals
are damaged, cut, and come back from a snapshot; one bookie loses the ledger, is away, or is begun
anew.
"""

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bkspark.admin import bookies
from bkspark.bookie import posix
from bkspark.bookkeeper import BookKeeper
from bkspark.errors import BookKeeperError
from bkspark.format import layout
from bkspark.ledger.recovery.fencing import FenceAndRead
from tests.integration.hand_writer import HandWriter
from tests.integration.recovery.successor import Successor
from tests.integration.rig import Rig
from tests.thorough import always

ALL = (0, 1, 2)
TERMS = 5
LEFT = 3
"""So many ids behind the end have something else on them."""
SEEDS = range(12)


class Scene:
    """Writers one behind the other, and what befalls the bookies of the one before.

    Attributes:
        victim: the one bookie that loses what counts: fewer than the ack quorum are lost.
        kept: journals as they were once, by bookie and name.
        ends: how long journals were when their writers were overtaken, likewise.
    """

    def __init__(self, rig: Rig, chance: random.Random, *, prunes: bool) -> None:
        self.rig, self.chance, self.prunes = rig, chance, prunes
        self.writer = HandWriter(rig, goes_on=True)
        self.writers = [self.writer]
        self.ledger_id = self.writer.ledger_id
        self.victim = chance.choice(self.writer.names)
        self.kept: dict[tuple[str, str], bytes] = {}
        self.ends: dict[tuple[str, str], int] = {}
        self.befell: list[str] = []

    def live(self) -> None:
        self.writer.add(*ALL, acknowledges=True)
        self.writer.confirm(*ALL)
        for _ in range(TERMS):
            self._leave()
            self._befall()
            self._note_ends()
            self.writer = Successor(self.writer, lost=self._silent(), prunes=self.prunes)
            self.writers.append(self.writer)
            self._leave_late()
            if self.chance.random() < 0.8:
                self.writer.add(*ALL, acknowledges=True)
                self.writer.confirm(*ALL)
            self._read()
        end = self.writer.recover().last_entry_id
        assert end >= max(self.writer.acked)
        self._read_on_each()
        assert self._found() == {n: self.writer.sent[n] for n in range(end + 1)}, self.befell

    def _leave(self) -> None:
        """One entry that nobody acknowledges, on one bookie; it may be kept or not."""
        self.writer.add(self.chance.choice(ALL))

    def _leave_late(self) -> None:
        """Who was overtaken goes on storing, behind the recovered end, where he has a journal."""
        for one in self.writers[:-1]:
            last = self.writer.pending.last_add_confirmed + LEFT
            while one.pending.last_add_pushed < last:
                one.add()
            for entry_id in range(self.writer.pending.last_add_confirmed + 1, last + 1):
                for index in ALL:
                    self._stored(one, entry_id, index)

    def _stored(self, one: HandWriter, entry_id: int, index: int) -> None:
        records = one._records
        if entry_id >= len(records):
            return
        try:
            one.store(entry_id, index)
        except (BookKeeperError, OSError):  # its journal is gone, or its bookie was begun anew
            self.befell.append("stored nothing")

    def _note_ends(self) -> None:
        """Behind where its writer's journals end now, whatever he stores comes too late."""
        ledger = self.writer.metadata
        name = layout.journal(self.ledger_id, ledger.term, ledger.token)
        for one in self.rig.urls:
            if name in self.rig.names(one):
                self.ends[one, name] = len(self.rig.file_bytes(one, name))

    # --- what befalls bookies -------------------------------------------------------------------

    def _befall(self) -> None:
        for what in self.chance.sample((self._flip, self._cut, self._bring_back, self._harm), 3):
            what()

    def _left_over(self) -> Iterator[tuple[str, str, bytes, int]]:
        """Journals with something behind the takeover from their writers, and where that begins."""
        for (bookie_id, name), end in self.ends.items():
            if name in self.rig.names(bookie_id):
                data = self.rig.file_bytes(bookie_id, name)
                if len(data) > end:
                    yield bookie_id, name, data, end

    def _flip(self) -> None:
        for bookie_id, name, data, end in list(self._left_over()):
            changed = bytearray(data)
            changed[self.chance.randrange(end, len(data))] ^= 1 << self.chance.randrange(8)
            self._change(bookie_id, name, bytes(changed), "is damaged")

    def _cut(self) -> None:
        for bookie_id, name, data, end in list(self._left_over()):
            if self.chance.random() < 0.5:
                self._change(bookie_id, name, data[:end], "is cut")

    def _bring_back(self) -> None:
        """What was there in front of a takeover comes back; what is there is kept for later."""
        for (bookie_id, name), data in self.kept.items():
            path = Path(posix.path_of(self.rig.urls[bookie_id])) / name
            if path.parent.is_dir() and bookie_id != self.victim:
                there = path.read_bytes() if path.exists() else b""
                if len(there) < len(data):
                    path.write_bytes(data)
                    self.befell.append(f"{name} of {bookie_id} comes back")
        self.kept |= {(one, name): data for one, name, data, _ in self._left_over()}

    def _change(self, bookie_id: str, name: str, data: bytes, what: str) -> None:
        self.rig.replace_file(bookie_id, name, data)
        self.befell.append(f"{name} of {bookie_id} {what}")

    def _harm(self) -> None:
        """The victim loses all that it has of the ledger, or is begun anew."""
        if self.chance.random() < 0.5:
            root = Path(posix.path_of(self.rig.urls[self.victim]))
            shutil.rmtree(root / layout.journal_folder(self.ledger_id).rpartition("/")[0], True)
            self.befell.append(f"{self.victim} loses the ledger")
        else:
            self.rig.wipe(self.victim)
            bookies.reinit(self.rig.uri, self.victim)
            self.befell.append(f"{self.victim} is begun anew")

    def _silent(self) -> list[str]:
        return [self.victim] if self.chance.random() < 0.3 else []

    # --- what is read ---------------------------------------------------------------------------

    def _read(self) -> None:
        """What is confirmed, where it can be told: all of it is the owner's."""
        try:
            found = self._found()
        except BookKeeperError as error:
            self.befell.append(str(error))
            return
        assert found == {n: self.writer.sent[n] for n in found}, self.befell

    def _found(self) -> dict[int, bytes]:
        with BookKeeper(self.rig.uri) as keeper:
            reader = keeper.open_ledger(self.ledger_id, recovery=False)
            return {entry.entry_id: entry.value for entry in reader.read()}

    def _read_on_each(self) -> None:
        """Each bookie alone gives an entry of its owner, or none."""
        everybody, read = set(self.rig.urls), 0
        for alone in everybody:
            self.rig.faults.down = everybody - {alone}
            with self.rig.faults.installed(), BookKeeper(self.rig.uri) as keeper:
                reader = keeper.open_ledger(self.ledger_id)
                for entry_id, value in self.writer.sent.items():
                    if entry_id > reader.last_add_confirmed:
                        continue
                    try:
                        [entry] = reader.read(entry_id, entry_id)
                    except BookKeeperError:
                        continue
                    assert entry.value == value, self.befell
                    read += 1
        self.rig.faults.forget()
        assert read >= len(self.writer.acked)


@pytest.mark.parametrize("prunes", [True, False], ids=["pruned", "not pruned"])
@pytest.mark.parametrize("seed", always([9], SEEDS))
def test_rb_34_what_is_left_over_is_read_by_nobody_whatever_befalls_bookies(
    seed: int, prunes: bool, make_rig: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recoveries look into journals of earlier terms too: it is the owner's term that decides."""
    monkeypatch.setattr(FenceAndRead, "_matters", lambda *_: True)
    scene = Scene(make_rig(kind="file", bookie_count=6), random.Random(seed), prunes=prunes)
    scene.live()
    assert len(scene.befell) >= TERMS
