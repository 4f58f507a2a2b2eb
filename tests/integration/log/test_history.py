"""What the history of a log says about streams and batches that write to it in turns."""

from bkspark.admin import views
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.log.rolling import RollPolicy
from tests.integration.rig import Rig, partitions_of
from tests.integration.stream_driver import Driver


def test_history_tells_what_a_stream_wrote(memory_rig: Rig) -> None:
    driver = Driver(memory_rig, limits=RollPolicy(max_records=2))
    driver.run(0, 1)
    driver.with_new_process().run(2)
    memory_rig.write(partitions_of(3))
    with Cluster(memory_rig.uri) as cluster:
        found = views.history(cluster, memory_rig.log_name)
    assert [(row["version"], row["operation"], row["entries"]) for row in found] == [
        (0, "stream", 20),
        (1, "stream", 10),
        (2, "append", 3),
    ]
    Driver(memory_rig).run(3)
    with Cluster(memory_rig.uri) as cluster:
        last = views.history(cluster, memory_rig.log_name)[-1]
    assert (last["version"], last["operation"], last["entries"]) == (None, "stream", 10)
    assert (last["first_offset"], last["bytes"]) == (33, found[1]["bytes"])


def test_history_tells_no_number_of_an_open_ledger_without_its_password(memory_rig: Rig) -> None:
    password = Password(literal="swordfish")
    Driver(memory_rig, options={"digest_type": "MAC", "password": password}).run(0)
    with Cluster(memory_rig.uri) as cluster:
        for given, count in ((None, None), (password, 10)):
            [last] = views.history(cluster, memory_rig.log_name, given)
            assert (last["operation"], last["entries"]) == ("stream", count)
