"""Access rights to a cluster's files: one user, or the members of a group.

Rule 1. Without a group a folder is made with mode 0700 and a file with 0600. A file that another
user could have changed is not trusted.

Rule 2. With a group a folder is made with mode 2770 and a file with 0660, and both belong to the
group. The mode is set after the file is made, so the umask of the process does not matter. A file
gets its name only after its mode. A folder is visible before its mode is set: ``settled`` waits for
its maker.

Rule 3. All other users may read new files if they may read the place itself. The operator decides
so by the mode of the folder that is the bookie or the metadata store.

Rule 4. A process trusts all files that belong to the group, and changes them only as a member of
the group, or as the owner of the place.

The operator chooses the group when making the cluster. The cluster's record holds the group; each
cookie and the marker of a metadata store in a folder repeat it.
"""

import errno
import grp
import os
import pwd
import stat
from collections.abc import Callable
from dataclasses import dataclass

from bkspark import environment
from bkspark.errors import InvalidRequestError
from bkspark.format.cluster import GROUP_MAX

FOLDER_MODE = 0o700
FILE_MODE = 0o600
_GROUP_FOLDER = 0o2770
_GROUP_FILE = 0o660
_OTHERS = 0o005
_OTHERS_READ = 0o004
_WAITS = (0.001, 0.004, 0.02, 0.1)
"""Seconds between looks at a folder that another member has just made."""


class NotPrivateError(PermissionError):
    """A user outside the owner and the group could have changed the file.

    Attributes:
        hint: the user's next action.
    """

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(errno.EPERM, reason)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Access:
    """The modes of new files in one place, and the conditions for trusting files.

    Attributes:
        group: id of the group whose members share the files; None for a single user.
        is_open_to_readers: whether all other users may read new files (rule 3).
    """

    group: int | None = None
    is_open_to_readers: bool = False

    @classmethod
    def of(cls, group: int | None, place: os.stat_result) -> "Access":
        """Make the ``Access`` of a place with the given status."""
        if group is None:
            return PRIVATE
        return cls(group, stat.S_IMODE(place.st_mode) & _OTHERS == _OTHERS)

    @property
    def folder_mode(self) -> int:
        if self.group is None:
            return FOLDER_MODE
        return _GROUP_FOLDER | (_OTHERS if self.is_open_to_readers else 0)

    @property
    def file_mode(self) -> int:
        if self.group is None:
            return FILE_MODE
        return _GROUP_FILE | (_OTHERS_READ if self.is_open_to_readers else 0)

    def settle_file(self, descriptor: int) -> None:
        """Give a new file, made by this process, the group and the mode (rule 2)."""
        if self.group is not None:
            self._settle(descriptor, os.fstat(descriptor), self.file_mode)

    def settle_folder(self, descriptor: int) -> None:
        """Settle a new folder, unless another user made it and this process is not root."""
        if self.group is not None:
            status = os.fstat(descriptor)
            if os.geteuid() in (status.st_uid, 0):
                self._settle(descriptor, status, self.folder_mode)

    def _settle(self, descriptor: int, status: os.stat_result, mode: int) -> None:
        assert self.group is not None
        if _is_shared(status, self.group, mode):
            return
        if status.st_gid != self.group:
            os.fchown(descriptor, -1, self.group)
        os.fchmod(descriptor, mode)
        if not _is_shared(os.fstat(descriptor), self.group, mode):
            raise NotPrivateError(
                f"the mode {mode:o} of group {group_name(self.group)} could not be set",
                f"run as a member of group {group_name(self.group)}",
            )

    def settled(self, look: Callable[[], os.stat_result]) -> os.stat_result:
        """The status of a folder, after waiting a short time for its maker to set the mode."""
        status = look()
        for seconds in _WAITS if self.group is not None else ():
            if stat.S_IMODE(status.st_mode) & 0o070 == 0o070 or status.st_uid == os.geteuid():
                break
            environment.sleep(seconds)
            status = look()
        return status

    def require_trusted(self, status: os.stat_result, name: str) -> None:
        """Return if only the user, the group's members and root can have changed the file (rule 4).

        Raises:
            NotPrivateError: another user could have; says why.
        """
        mode = stat.S_IMODE(status.st_mode)
        if mode & stat.S_IWOTH:
            right = self.folder_mode if stat.S_ISDIR(status.st_mode) else self.file_mode
            raise NotPrivateError(f"{name} is writable by all users", f"chmod {right:o} {name}")
        if self.group is not None and status.st_gid == self.group:
            return
        if self.group is not None and mode & stat.S_IWGRP:
            raise NotPrivateError(
                f"{name} is writable by group {group_name(status.st_gid)}, and the cluster's group "
                f"is {group_name(self.group)}",
                f"chgrp {self.group} {name}",
            )
        if status.st_uid not in (os.geteuid(), 0):
            raise NotPrivateError(
                f"{name} belongs to user {user_name(status.st_uid)}, and this process runs as "
                f"user {user_name(os.geteuid())}",
                f"run as user {user_name(status.st_uid)}",
            )

    def require_may_change(self, place: os.stat_result) -> None:
        """Return if the place has no group, or this process is a member or the place's owner.

        Raises:
            NotPrivateError: neither member nor owner.
        """
        if self.group is None or place.st_uid == os.geteuid() or is_member(self.group):
            return
        raise NotPrivateError(
            f"only members of group {group_name(self.group)} can change it, and user "
            f"{user_name(os.geteuid())} is not a member",
            f"run as a member of group {group_name(self.group)}",
        )


PRIVATE = Access()


def settle_place(path: str, group: int | None) -> None:
    """Make the folder at ``path`` the group's, closed to all other users; the folder is unused yet.

    Raises:
        NotPrivateError: the folder belongs to another user, and not to the group.
    """
    if group is None:
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        Access(group).settle_folder(descriptor)
        status = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    if status.st_gid != group or status.st_mode & _GROUP_FOLDER != _GROUP_FOLDER:
        raise NotPrivateError(
            f"{path} is not a folder of group {group_name(group)}",
            f"let the owner run: chgrp {group_name(group)} {path}; chmod 2770 {path}",
        )


def _is_shared(status: os.stat_result, group: int, mode: int) -> bool:
    return status.st_gid == group and stat.S_IMODE(status.st_mode) == mode


def is_member(group: int) -> bool:
    """Whether this process is in the group."""
    return group == os.getegid() or group in os.getgroups()


def group_id(given: str | int) -> int:
    """The id of the operator's named group, in which this process may make files.

    Raises:
        InvalidRequestError: there is no such group, or this user is not in it.
    """
    number = _number_of(given)
    if not is_member(number) and os.geteuid() != 0:
        raise InvalidRequestError(
            f"user {user_name(os.geteuid())} is not a member of group {group_name(number)}",
            hint="run as a member of the group, or as root",
        )
    return number


def _number_of(given: str | int) -> int:
    if isinstance(given, str):
        try:
            return grp.getgrnam(given).gr_gid
        except (KeyError, ValueError):
            pass
        if given.isascii() and given.isdigit():
            given = int(given)
    if isinstance(given, int) and not isinstance(given, bool) and 0 <= given <= GROUP_MAX:
        return given
    raise InvalidRequestError(
        f"group {given!r} does not exist on this host", hint="give its name or its number"
    )


def group_name(group: int) -> str:
    """For messages: the name, or the number if there is no name here."""
    try:
        return grp.getgrgid(group).gr_name
    except (KeyError, OverflowError):
        return str(group)


def user_name(user: int) -> str:
    """For messages: the name, or the number if there is no name here."""
    try:
        return pwd.getpwuid(user).pw_name
    except (KeyError, OverflowError):
        return str(user)


def who_may(place: str | int) -> str:
    """The user's next action to get access to a path or descriptor; empty if unknown."""
    try:
        status = os.stat(place)
    except OSError:
        return ""
    if stat.S_IMODE(status.st_mode) & _GROUP_FOLDER == _GROUP_FOLDER:
        return f"run as a member of group {group_name(status.st_gid)}"
    return f"run as its owner, user {user_name(status.st_uid)}"
