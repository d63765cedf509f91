"""What every test may ask for: services, database addresses, and a store that starts empty."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import hypothesis
import pytest
from pytest_django import DjangoDbBlocker

from better_compute.devtools.services import Services
from tests.warm import PROJECT, Warm


def _python_for_everyone() -> str | None:
    """An interpreter like ours that an ordinary user can run; ours may stand below /root."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for path in (Path(sys.executable).resolve(), Path("/usr/bin") / version, Path("/usr/local/bin") / version):
        if path.exists() and all(part.stat().st_mode & 0o001 for part in (path, *path.parents)):
            return str(path)
    return None


# No deadline: the machine may be doing something else, and none of these claims is about time. A failure prints
# what makes it happen again. Tests that state a number of examples keep it.
hypothesis.settings.register_profile("suite", deadline=None, print_blob=True)
hypothesis.settings.register_profile("thorough", hypothesis.settings.get_profile("suite"), max_examples=400)
hypothesis.settings.load_profile("thorough" if os.environ.get("COMPUTE_TEST_THOROUGH") else "suite")

#: What stands behind a name given to ``needs``: True when this machine has it.
TOOLS: dict[str, Callable[[], bool]] = {
    "chromium": lambda: any(shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome")),
    "root": lambda: os.geteuid() == 0,
    "python-for-everyone": lambda: _python_for_everyone() is not None,
    "postgresql15": lambda: Path("/usr/lib/postgresql/15/bin/postgres").exists(),
}


#: Files of many seconds whose tests need no database of ours, so that pytest-django puts them last.
LONG = (
    "tests/devtools/test_compute_dev.py",
    "tests/chaos/test_chaos.py",
    "tests/smoke/test_quickstart.py",
    "tests/smoke/test_wheel.py",
    "tests/devtools/test_install.py",
    "tests/models/test_work.py",
    "tests/ledger/test_new_module.py",
)


def has_tool(name: str) -> bool:
    """Whether this machine has what the name stands for; by default a program on PATH."""
    return TOOLS.get(name, lambda: shutil.which(name) is not None)()


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Start the database and the broker that the environment does not name, once for all xdist workers."""
    if getattr(config.option, "output", None) == "test-results":
        # The browser plugin empties its folder at every start, and our screenshots with it.
        config.option.output = "test-results/playwright"
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell lets what it runs in the background ignore Ctrl-C, and programs that tests start would inherit that.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.option.collectonly or hasattr(config, "workerinput"):
        return
    writer = config.get_terminal_writer()
    services = Services(progress=writer.line)
    services.start()
    config.add_cleanup(services.stop)
    _point_at(os.environ["DATABASE_URL"])


def _point_at(url: str) -> None:
    """Settings were read before the services started; no connection has been opened yet."""
    from django.db import connections

    from example_project.settings import database

    names = ("NAME", "USER", "PASSWORD", "HOST", "PORT")
    connections.settings["default"].update({name: database(url)[name] for name in names})


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the longest of the files that stand last come first, lest one process be left with them at the end."""
    ranks = {name: rank for rank, name in enumerate(LONG)}
    items.sort(key=lambda item: ranks.get(item.nodeid.partition("::")[0], len(ranks)))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose tool is missing, or fail it where everything must be there."""
    for marker in item.iter_markers("needs"):
        for tool in marker.args:
            if has_tool(tool):
                continue
            if os.environ.get("COMPUTE_TEST_ALL"):
                pytest.fail(f"needs {tool}, which COMPUTE_TEST_ALL promises; install it", pytrace=False)
            pytest.skip(f"needs {tool}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Write out what UTF-8 has no form for: some tests log lone surrogates, which break the way between processes."""
    report = yield
    report.sections = [
        (name, text.encode("utf-8", "backslashreplace").decode("utf-8")) for name, text in report.sections
    ]
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print what tests recorded as ``report``, whichever process they ran in."""
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, ()):
            for name, text in getattr(report, "user_properties", ()):
                if name == "report" and report.when == "call":
                    terminalreporter.section(report.nodeid.rpartition("::")[2])
                    terminalreporter.write_line(text)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Let tests that really commit put back what they changed, instead of truncating every table after each."""
    from django.test import TransactionTestCase

    from better_compute.store.fixture import BASELINE
    from better_compute.testing import restore_baseline, take_baseline

    with django_db_blocker.unblock():
        if _has_schema(BASELINE):
            # The database was kept from an earlier run, which may have been cut short inside a test.
            restore_baseline()
        take_baseline()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda case: restore_baseline())
        yield


def _has_schema(name: str) -> bool:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regnamespace(%s) IS NOT NULL", [name])
        return bool(cursor.fetchone()[0])


def _with(url: str, *, user: str | None = None, password: str | None = None, database: str | None = None) -> str:
    """The URL with another user or database name."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    account = parts.netloc.rpartition("@")[0]
    if user is not None:
        account = quote(user) + (f":{quote(password)}" if password else "")
    path = f"/{quote(database)}" if database is not None else parts.path
    return urlunsplit((parts.scheme, f"{account}@{host}" if account else host, path, parts.query, ""))


@pytest.fixture(scope="session")
def owner_url(django_db_setup: None) -> str:
    """The test database's address as the owner role, for another process or another connection."""
    from django.db import connection

    return _with(os.environ["DATABASE_URL"], database=str(connection.settings_dict["NAME"]))


@pytest.fixture(scope="session")
def app_url(owner_url: str) -> str:
    """The test database's address as the role that serves, which owns nothing."""
    return _with(
        owner_url,
        user=os.environ.get("COMPUTE_APP_ROLE", "bc_app"),
        password=os.environ.get("COMPUTE_APP_PASSWORD"),
    )


@pytest.fixture(scope="session")
def python_for_everyone() -> str:
    """An interpreter that an ordinary user can run; mark the test as needing ``python-for-everyone``."""
    return _python_for_everyone() or ""


@pytest.fixture(scope="session")
def broker_url() -> str:
    """The broker's address."""
    return os.environ["CELERY_BROKER_URL"]


@pytest.fixture(scope="session")
def warm_project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    """The process that forks for each worker or server of the example project."""
    server = Warm(tmp_path_factory.mktemp("project") / "socket", PROJECT)
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def process_env(owner_url: str, broker_url: str) -> dict[str, str]:
    """The environment of a child process (a worker, a server, manage.py) that works on the test database."""
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "DATABASE_URL": owner_url,
        "CELERY_BROKER_URL": broker_url,
    }
