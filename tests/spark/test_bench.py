"""``bkspark bench write`` and ``read``, in a Spark session."""

import json

import bkspark
from bkspark.cli import main


def test_a_write_and_a_read_are_measured_and_leave_nothing(spark, place, capfd):
    place.write(spark.range(100))
    assert main(["bench", "write", "--rows", "1000", "--json", "--metadata", place.uri]) == 0
    document = json.loads(capfd.readouterr().out)
    rates = {row["what"]: row["per_second"] for row in document["figures"]}
    assert len(rates) == 6
    assert min(rates.values()) > 0
    assert "3 copies of 1,000 rows" in document["told"]
    with bkspark.BookKeeper(place.uri) as keeper:
        assert len(keeper.list_logs()) == len(keeper.list_ledgers()) == 1
        [name] = keeper.list_logs()
    assert main(["bench", "read", name, "--metadata", place.uri]) == 0
    assert "3 reads" in capfd.readouterr().err
