"""What is shown of a log that is streamed into: as much as can be read of it."""

from bkspark.admin import views
from bkspark.cluster.cluster import Cluster
from tests.integration.rig import LOG, Rig
from tests.integration.stream_driver import ROWS_PER_BATCH, Driver


def test_a_log_that_is_streamed_into_is_shown_up_to_its_last_batch(rig: Rig) -> None:
    driver = Driver(rig)
    with Cluster(rig.uri) as cluster:
        for batch_id in range(3):
            driver.run(batch_id)
            (log,) = views.logs(cluster, None)
            count = ROWS_PER_BATCH * (batch_id + 1)
            assert (log["log"], log["entries"], log["end_offset"]) == (LOG, count, count)
            assert (log["tail_confirmed"], log["is_end_known"]) == ([count], True)
            assert log["bytes"] > 0
        driver.held.rest()
        assert views.logs(cluster, None)[0]["entries"] == count


def test_a_log_whose_tail_nobody_can_tell_of_is_shown_up_to_what_is_closed(rig: Rig) -> None:
    driver = Driver(rig)
    driver.run(0)
    for bookie_id in rig.urls:
        rig.lose(bookie_id)
    with Cluster(rig.uri) as cluster:
        (log,) = views.logs(cluster, LOG)
    assert (log["entries"], log["tail_confirmed"], log["is_end_known"]) == (0, [None], False)
