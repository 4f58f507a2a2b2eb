"""Records of upkeep about a cluster, for later runs and for operators."""

from bkspark.cluster.notes import Notes
from bkspark.cluster.records import Records
from bkspark.format import layout, report_record
from bkspark.format import recovery as recovery_format
from bkspark.format.recovery import AwayBookie, LostBookie, StuckRecovery
from bkspark.format.report_record import ReportRecord
from bkspark.metadata.contract import MetadataStore


class UpkeepRecords:
    """The records about bookies and runs; none describes a ledger's contents.

    Attributes:
        recoveries: why a ledger could not be recovered, by its id.
        lost: bookies that an operator declared lost for ever.
        away: since when a bookie has been silent.
        reports: the findings of each command's last run.
    """

    def __init__(self, store: MetadataStore) -> None:
        self.recoveries: Records[StuckRecovery] = Records(
            store,
            lambda name: layout.recovery_key(int(name)),
            recovery_format.encode_stuck,
            lambda name, data: recovery_format.decode_stuck(int(name), data),
        )
        self.lost: Records[LostBookie] = Records(
            store, layout.lost_key, recovery_format.encode_lost, recovery_format.decode_lost
        )
        self.away: Notes[AwayBookie] = Notes(
            store, layout.away_key, recovery_format.encode_away, recovery_format.decode_away
        )
        self.reports: Notes[ReportRecord] = Notes(
            store, layout.report_key, report_record.encode, report_record.decode
        )
