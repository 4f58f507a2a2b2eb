"""What is removed from a bookie of several writers before, and in which order (R20)."""

import pytest

from bkspark.bookie.memory import MemoryRoot
from bkspark.bookie.uri import open_bookie
from bkspark.format import layout
from bkspark.ledger.recovery.recoverer import prune
from bkspark.protocol.recovery.steps import Prune
from tests.integration.rig import Rig

from .test_taking_over import Scene, scene  # noqa: F401 (a fixture)

STRANGER, WRITER, NEXT = "0" * 32, "a" * 32, "b" * 32


@pytest.mark.parametrize("tokens", [(STRANGER, WRITER), (WRITER, "f" * 32)], ids=str)
def test_a_fence_stays_while_any_permission_of_its_term_does(
    scene: Scene,  # noqa: F811
    memory_rig: Rig,
    monkeypatch: pytest.MonkeyPatch,
    tokens: tuple[str, str],
) -> None:
    """A bookie was not sure that it had taken a permission, and the writer has drawn another one.

    Nobody can tell by the bookie which of them was his, whichever comes first.
    """
    scene.first().release()
    ledger_id, member = scene.ledger_id, scene.ledger.last_fragment.ensemble[0]
    address = scene.cluster.addresses()[member]
    permissions = [layout.permission(ledger_id, 1, token) for token in tokens]
    later, fence = layout.permission(ledger_id, 2, NEXT), layout.term_marker(ledger_id, 2)
    with open_bookie(address).open_root() as root:
        root.delete(layout.permission(ledger_id, 1, scene.ledger.token))
        for name in (*permissions, fence, later, layout.term_marker(ledger_id, 3)):
            root.put_new(name, b"")
    gone = list[str]()
    real = MemoryRoot.delete

    def delete(self: MemoryRoot, name: str) -> bool:
        gone.append(name)
        return real(self, name)

    monkeypatch.setattr(MemoryRoot, "delete", delete)
    prune(address, Prune(member, (2, NEXT)), scene.ledger, scene._digester)
    markers = [name for name in gone if "/terms/" in name]
    assert markers == [*permissions, fence, later, layout.term_marker(ledger_id, 3)]
    assert not [name for name in memory_rig.names(member.bookie_id) if "/terms/" in name]
