"""A Delta table: its versions and its commits, from its own log.

    table = open_table("s3a://bucket/events")
    snapshot = table.snapshot()
    snapshot.files

Nothing is remembered between two calls.
"""

from collections.abc import Mapping
from typing import Any

from bkspark.errors import (
    CommitsGoneError,
    CorruptDataError,
    NoSuchTableError,
    TableUnavailableError,
)
from bkspark.storage.address import shown_url
from bkspark.storage.folders import Folder, open_folder
from bkspark.table.asking import FileGoneError, asking_for
from bkspark.table.replay import (
    LOG,
    LogFiles,
    commit_digest,
    commit_name,
    first_success,
    list_log,
    read_commit,
)
from bkspark.table.snapshot import Commit, Snapshot

_LISTINGS = 4
"""How often a log is listed: its owner may remove old files, or add one, during a listing."""


class DeltaTable:
    """A table in a folder. Holds no open resources; any number may exist.

    Attributes:
        url: the canonical address, without credentials.
        folder: where its files are.
    """

    def __init__(self, folder: Folder, offset_column: str = "") -> None:
        self.url = folder.url
        self.folder = folder
        self._offset_column = offset_column

    def snapshot(self, version: int | None = None) -> Snapshot:
        """Replay a version.

        Args:
            version: None for the newest.

        Raises:
            NoSuchTableError: there is no table, or no such version.
            TableUnavailableError: storage gave no certain answer, or a commit is missing.
            CorruptDataError: a file of the log is damaged; names it.
            UnsupportedTableError: the table needs a feature that this release cannot read.
        """
        missing = ""
        for attempt in range(_LISTINGS):
            is_short = attempt == 0
            with asking_for(self.url, LOG):
                files = list_log(self.folder, version, uses_hint=is_short)
            wanted = self._wanted(files, version)
            try:
                found = first_success(self.folder, files, wanted, self._offset_column)
            except FileGoneError as gone:
                missing = gone.name
                continue
            except CorruptDataError:
                if is_short:  # older files may be whole
                    continue
                raise
            if found is not None:
                return found
            missing = f"{LOG}/{commit_name(files.first_missing(wanted))}"
        raise TableUnavailableError(
            f"version {wanted} of the table at {shown_url(self.url)} cannot be replayed: "
            f"{missing} is missing",
            hint="read a newer version, or restore the file from a backup of the table",
        )

    def commits(self, after: int, upto: int) -> tuple[Commit, ...]:
        """What the commits after version ``after`` up to version ``upto`` say of themselves.

        Raises:
            CommitsGoneError: some of them were removed, as a log is cleaned up.
            TableUnavailableError: storage gave no certain answer.
            CorruptDataError: one is damaged; names it.
        """
        return tuple(self._commit(version) for version in range(after + 1, upto + 1))

    def commit_digest(self, version: int) -> str:
        """The digest of a commit; "" if it was removed, as a log is cleaned up.

        Raises:
            TableUnavailableError: storage gave no certain answer.
        """
        return commit_digest(self.folder, version)

    def log_names(self, after: int) -> list[str]:
        """The files of the log with version ``after`` or a later one, below the table.

        Raises:
            TableUnavailableError: storage gave no certain answer.
        """
        with asking_for(self.url, LOG):
            found = self.folder.sizes(LOG, commit_name(after - 1) if after > 0 else "")
        return [f"{LOG}/{name}" for name in found if name[:1].isdigit()]

    def _absent(self, files: LogFiles) -> NoSuchTableError:
        """The error of a place without a table; an empty folder may be where a disk belongs."""
        with asking_for(self.url, "its folder"):
            is_bare = not (files.sizes or self.folder.sizes(""))
        what = f"there is no Delta table at {shown_url(self.url)}"
        moved = "if the folder was moved, give its new address"
        if is_bare and self.url.startswith("file:"):
            return NoSuchTableError(
                f"{what}, and no file: its disk may not be mounted",
                hint=f"mount the disk, or check the address; {moved}",
            )
        return NoSuchTableError(what, hint=f"check the address; {moved}")

    def _wanted(self, files: LogFiles, version: int | None) -> int:
        newest = files.newest
        if newest < 0:
            raise self._absent(files)
        if version is not None and not 0 <= version <= newest:
            raise NoSuchTableError(
                f"the table at {shown_url(self.url)} has no version {version}: "
                f"its newest is {newest}",
                hint="if it was restored from a backup, later versions are lost",
            )
        return newest if version is None else version

    def _commit(self, version: int) -> Commit:
        try:
            actions, _ = read_commit(self.folder, version)
        except FileGoneError as gone:
            raise CommitsGoneError(
                f"the table at {shown_url(self.url)} does not have {gone.name} any more",
                hint="a table keeps commits for 30 days: see delta.logRetentionDuration",
            ) from gone
        with asking_for(self.url, f"{LOG}/{commit_name(version)}"):
            return _commit_of(version, actions)


def open_table(url: str, offset_column: str = "") -> DeltaTable:
    """Return the table at an address as Spark users write it, without a look.

    Args:
        offset_column: the physical name of the column of offsets; "" for the column that is named
            ``_offset`` in the table.

    Raises:
        InvalidRequestError: no such address.
    """
    return DeltaTable(open_folder(url), offset_column)


def _commit_of(version: int, actions: Any) -> Commit:
    info: Mapping[str, Any] = next((a["commitInfo"] for a in actions if a.get("commitInfo")), {})
    time = info.get("inCommitTimestamp", info.get("timestamp"))
    transactions = [action["txn"] for action in actions if action.get("txn")]
    return Commit(
        version=version,
        operation=str(info.get("operation") or ""),
        time_ms=time if isinstance(time, int) else None,
        user=str(info.get("userName") or info.get("userId") or ""),
        user_metadata=str(info.get("userMetadata") or ""),
        adds_rows=any(_changes(action.get("add")) for action in actions),
        removes_rows=any(_changes(action.get("remove")) for action in actions),
        changes_metadata=any(action.get("metaData") for action in actions),
        changes_protocol=any(action.get("protocol") for action in actions),
        transactions={str(txn["appId"]): int(txn["version"]) for txn in transactions},
    )


def _changes(action: Mapping[str, Any] | None) -> bool:
    return action is not None and action.get("dataChange") is not False
