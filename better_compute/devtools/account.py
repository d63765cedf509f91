"""The unprivileged user that PostgreSQL runs as when we are root, and what that user can reach.

PostgreSQL refuses to run as root. No user is made for it: the distribution's ``postgres`` serves, else
``nobody``, which every system has.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CANDIDATES = ("postgres", "nobody")
#: Where a server's files go when its user cannot reach the project, for example below /root.
ELSEWHERE = Path("/var/tmp")  # noqa: S108  (the directory made there is checked to be root's)


@dataclass(frozen=True, slots=True)
class Account:
    """A user of the operating system."""

    name: str
    uid: int
    gid: int

    def can_pass(self, path: Path) -> bool:
        """Whether every directory above ``path`` lets this user through."""
        return all(self._may(parent, stat.S_IXUSR, stat.S_IXGRP, stat.S_IXOTH) for parent in path.absolute().parents)

    def can_run(self, program: Path) -> bool:
        """Whether this user may execute ``program``."""
        return self.can_pass(program) and self._may(program, stat.S_IXUSR, stat.S_IXGRP, stat.S_IXOTH)

    def _may(self, path: Path, user: int, group: int, other: int) -> bool:
        found = path.stat()
        if found.st_uid == self.uid:
            return bool(found.st_mode & user)
        if found.st_gid == self.gid:
            return bool(found.st_mode & group)
        return bool(found.st_mode & other)


def unprivileged() -> Account | None:
    """The account to run servers as; None when we are no root and simply run them ourselves."""
    if os.geteuid() != 0:
        return None
    for name in CANDIDATES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(name, entry.pw_uid, entry.pw_gid)
    raise RuntimeError(
        f"PostgreSQL refuses to run as root and none of the users {', '.join(CANDIDATES)} exists. "
        "Run as an ordinary user, or set DATABASE_URL to a running server."
    )


def home_for(account: Account | None, wanted: Path) -> Path:
    """``wanted`` itself, or, when ``account`` cannot reach it, a directory in /var/tmp to use instead.

    A link ``elsewhere`` in ``wanted`` then leads there.
    """
    if account is None or account.can_pass(wanted / "below"):
        return wanted
    real = ELSEWHERE / f"better-compute-{hashlib.sha256(str(wanted).encode()).hexdigest()[:16]}"
    real.mkdir(mode=0o711, exist_ok=True)
    found = real.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise RuntimeError(f"{real} exists and is not ours. Remove it, or set DATABASE_URL to a running server.")
    link = wanted / "elsewhere"
    if not link.is_symlink():
        link.symlink_to(real)
    return real


def within_reach(account: Account | None, program: Path, root: Path, trees: Sequence[str], home: Path) -> Path:
    """The program itself when ``account`` can run it, else its twin in a copy of ``trees`` in ``home``.

    ``trees`` are the directories below ``root`` that the program needs, itself included.
    """
    if account is None or account.can_run(program):
        return program
    copy = home / f"programs-{int(program.stat().st_mtime)}"
    if not copy.exists():
        unfinished = copy.with_name(copy.name + ".new")
        shutil.rmtree(unfinished, ignore_errors=True)
        for tree in trees:
            if (root / tree).exists():
                shutil.copytree(root / tree, unfinished / tree)
        for path in (unfinished, *unfinished.rglob("*")):
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & stat.S_IXUSR else 0o644)
        unfinished.rename(copy)
    return copy / program.relative_to(root)
