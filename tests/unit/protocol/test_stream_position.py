"""How a streaming query goes on from its position."""

import pytest

from bkspark.errors import InvalidRequestError, NoSuchEntryError
from bkspark.protocol.log.stream_run import (
    Extent,
    Position,
    Resumption,
    StreamRun,
    begin_at,
    require_cluster,
    require_order,
    require_same_cluster,
    resume,
)

LOG = Extent("events", generation=3, first_offset=10, end_offset=50)
OPEN = Extent("events", generation=3, first_offset=10, end_offset=50, has_open_end=True)


@pytest.mark.parametrize("offset", [10, 11, 50])
@pytest.mark.parametrize("fails_on_loss", [True, False])
def test_a_position_inside_is_where_the_query_goes_on(offset, fails_on_loss):
    start = Position(3, offset)
    assert resume(start, LOG, fails_on_loss=fails_on_loss) == Resumption(start)


def test_a_query_reads_and_writes_the_cluster_of_its_checkpoint():
    for before in ("", "one"):
        require_cluster(before, "one", "events")
        require_same_cluster(StreamRun("q", "r"), before, "one")
    with pytest.raises(InvalidRequestError, match="of log 'events' in cluster two"):
        require_cluster("two", "one", "events")
    with pytest.raises(InvalidRequestError, match="now leads to cluster one"):
        require_same_cluster(StreamRun("q", "r"), "two", "one")


def test_truncated_rows_are_an_error():
    with pytest.raises(NoSuchEntryError, match="truncated below offset 10, and the query is at 9"):
        resume(Position(3, 9), LOG, fails_on_loss=True)


def test_or_a_skip_that_is_counted():
    found = resume(Position(3, 4), LOG, fails_on_loss=False)
    assert (found.begin, found.skipped) == (Position(3, 10), 6)
    assert "truncated below offset 10" in found.loss


@pytest.mark.parametrize("offset", [0, 30, 99])
def test_another_generation_is_an_error_whatever_the_offset(offset):
    with pytest.raises(NoSuchEntryError, match="generation 2, and the log has only generation 3"):
        resume(Position(2, offset), LOG, fails_on_loss=True)


def test_or_a_restart_that_is_reported():
    found = resume(Position(2, 99), LOG, fails_on_loss=False)
    assert (found.begin, found.skipped) == (Position(3, 10), None)  # nobody knows how many
    assert "overwritten" in found.loss


@pytest.mark.parametrize("position", [Position(3, 51), Position(4, 0)])
@pytest.mark.parametrize("fails_on_loss", [True, False])
def test_a_position_in_the_future_is_an_error(position, fails_on_loss):
    with pytest.raises(InvalidRequestError, match="the query is past that"):
        resume(position, LOG, fails_on_loss=fails_on_loss)


def test_behind_an_open_end_it_may_only_be_unseen():
    assert resume(Position(3, 51), OPEN, fails_on_loss=True).begin == Position(3, 51)
    with pytest.raises(InvalidRequestError):
        resume(Position(4, 0), OPEN, fails_on_loss=True)


def test_a_new_query_begins_at_an_offset_of_this_generation():
    assert begin_at(50, LOG) == Position(3, 50)
    with pytest.raises(NoSuchEntryError, match=r"ends at offset 50, .* at 51"):
        begin_at(51, OPEN)


def test_a_batch_does_not_end_before_its_start():
    require_order(Position(1, 5), Position(1, 5))
    require_order(Position(1, 5), Position(2, 0))
    with pytest.raises(InvalidRequestError, match="ends before it, at 4"):
        require_order(Position(1, 5), Position(1, 4))
    with pytest.raises(InvalidRequestError):
        require_order(Position(2, 0), Position(1, 9))
