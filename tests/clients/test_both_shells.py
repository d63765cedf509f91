"""``better-compute`` and ``manage.py compute api`` say the same, and end with the same codes."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from better_compute import Principal, compute
from better_compute.client import cli, shell
from better_compute.store import transaction
from better_compute.store.work import WorkRow
from tests.clients.conftest import Running

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "use-a-client.md"

pytestmark = pytest.mark.django_db(transaction=True)

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(params=["over HTTP", "in process"])
def run(
    request: pytest.FixtureRequest,
    running: Running,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Run:
    """Run a line in either shell."""
    monkeypatch.setenv(cli.URL, running.url)
    monkeypatch.setenv(cli.TOKEN, running.token)

    def over_http(*arguments: str) -> int:
        try:
            return cli.main(arguments)
        except SystemExit as ended:
            return int(ended.code or 0)

    def in_process(*arguments: str) -> int:
        try:
            call_command("compute", "api", *arguments, stdout=io.StringIO())
        except CommandError as error:
            sys.stderr.write(f"{error}\n")
            return error.returncode
        except SystemExit as ended:
            return int(ended.code or 0)
        return 0

    main = over_http if request.param == "over HTTP" else in_process

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(*arguments)
        out, err = capsys.readouterr()
        return code, out, err

    return run


def queue(*keys: str) -> None:
    with transaction.transaction():
        transaction.enqueue([WorkRow("acme.widgets", key, -1) for key in keys])


class TestTheQuestion:
    @pytest.mark.parametrize("wait", [(), ("--wait", "state=active"), ("--watch",)])
    @pytest.mark.parametrize(
        ("method", "hint"),
        [
            ("work.lst", "Did you mean work.list?"),
            ("plugins.acme.widgets.pock", "Did you mean plugins.acme.widgets.poke?"),
            ("work", "Did you mean work.list"),
        ],
    )
    def test_an_unknown_method_has_neighbours(self, run: Run, method: str, hint: str, wait: tuple[str, ...]) -> None:
        code, out, err = run(method, *wait)
        assert (code, out) == (shell.USAGE, "")
        assert err.startswith(f"No hosted module offers the method {method!r}. ")
        assert hint.rstrip("?") in err
        assert err.count("\n") == 1

    def test_one_without_neighbours_says_where_all_are_listed(self, run: Run) -> None:
        code, _, err = run("zzz.qqq")
        assert code == shell.USAGE
        assert re.fullmatch(
            r"No hosted module offers the method 'zzz\.qqq'\. "
            r"`(better-compute|manage\.py compute api) --list` lists them\.\n",
            err,
        )

    def test_none_at_all(self, run: Run) -> None:
        code, _, err = run()
        assert code == shell.USAGE
        assert err.startswith("Name a method; `")

    def test_a_record_that_is_not_there_is_a_refusal_and_no_unknown_method(self, run: Run) -> None:
        code, _, err = run("work.requeue", "kind=acme.widgets", "key=nobody")
        assert (code, err.partition(":")[0]) == (shell.REFUSED, "NOT_FOUND")

    @pytest.mark.parametrize(
        ("given", "hint"),
        [
            ("limit=3", "limit=3 gives text; write limit:=3"),
            ("limit=many", "limit=many gives text; write limit:=1"),
            ("kind:=5", "kind:=5 gives no text; write kind=5"),
            ("limt:=3", "Did you mean limit?"),
        ],
    )
    def test_a_value_of_another_type_is_told_as_it_is_typed(self, run: Run, given: str, hint: str) -> None:
        code, _, err = run("work.list", given)
        assert code == shell.USAGE
        assert err.splitlines()[-1] == f"  {hint}"

    def test_a_list_that_was_given_as_text(self, run: Run) -> None:
        code, _, err = run("iam.batchCheck", "tenantId=t1", "checks=x")
        assert code == shell.USAGE, err
        assert err.splitlines()[-1] == """  checks=x gives text; write 'checks:=["x"]'"""

    def test_options_stand_anywhere_and_are_not_abbreviated(self, run: Run) -> None:
        queue("a", "b", "c")
        code, out, _ = run("work.list", "--all", "limit:=2", "--json", "kind=acme.widgets")
        assert code == 0
        assert out.count('"key"') == 3
        assert run("work.list", "--al")[0] == shell.USAGE

    def test_the_list_of_methods(self, run: Run) -> None:
        code, out, _ = run("--list", "work.")
        assert code == 0
        assert [line.split()[0] for line in out.splitlines()][:2] == ["method", "work.list"]

    def test_the_list_of_one_method_shows_what_it_takes(self, run: Run) -> None:
        code, out, _ = run("--list", "grants.create")
        assert code == 0
        listed, taken = out.split("\n\n")
        assert listed.splitlines()[-1].startswith("grants.create  mutation  Give")
        rows = [re.split(r"  +", line) for line in taken.splitlines()]
        assert rows[:2] == [["input of grants.create"], ["field", "type", "given"]]
        assert ["tenantId", "text", "required"] in rows
        assert ["effect", "forbid, permit", 'default "permit"'] in rows
        assert ["resource", "object of type, id or null", "default null"] in rows
        code, out, _ = run("--list", "plugins.acme.widgets.poke", "--json")
        assert '"field": "widgetId"' in out

    def test_a_list_of_nothing_names_what_comes_near(self, run: Run) -> None:
        code, out, err = run("--list", "wrok")
        assert (code, out) == (shell.USAGE, "")
        assert err.startswith("No hosted module offers the method 'wrok'.")

    def test_a_missing_field_tells_where_all_are_shown(self, run: Run) -> None:
        code, _, err = run("plugins.acme.widgets.poke", "tenantId=t1")
        assert code == shell.USAGE
        assert re.search(r"  `.+ --list plugins.acme.widgets.poke` shows every field\.$", err)

    def test_a_dry_run_says_that_it_was_one(self, run: Run) -> None:
        told = run("plugins.acme.widgets.poke", "tenantId=t1", "widgetId=w1", "--dry-run")
        assert told == (0, "poked  w1\n", "It was a dry run: nothing of this was kept.\n")

    def test_what_only_looks_is_not_tried(self, run: Run) -> None:
        told = run("plugins.acme.widgets.count", "tenantId=t1", "--dry-run")
        assert told == (
            shell.USAGE,
            "",
            "plugins.acme.widgets.count only looks and keeps nothing; leave --dry-run out.\n",
        )


class TestWaitingForWhatNeverComes:
    @pytest.mark.parametrize(
        ("condition", "told"),
        [
            ("nope=0", "The answer has no 'nope'; it has tenantId, state, reason, changedAt, teardownDoneAt."),
            ("state.more=1", "The answer's state has no 'more'; it has no members."),
        ],
    )
    def test_a_member_that_there_is_not(self, run: Run, condition: str, told: str) -> None:
        for option in (["--wait", condition], ["--wait", "state=active", "--unless", condition]):
            code, out, err = run("tenants.get", "tenantId=t1", *option)
            assert (code, out) == (shell.USAGE, "")
            assert told in err
            assert err.count("\n") == 1

    @pytest.mark.parametrize(
        ("condition", "told"),
        [
            ("count=many", "count is never 'many'; it is an integer."),
            ('count:="3"', "count is never '\"3\"'; it is an integer."),
            ("count:=true", "count is never 'true'; it is an integer."),
            ("count!=-", "count is never '-'; it is an integer."),
        ],
    )
    def test_a_value_that_the_member_never_has(self, run: Run, condition: str, told: str) -> None:
        code, _, err = run("plugins.acme.widgets.count", "tenantId=t1", "--wait", condition)
        assert (code, err) == (shell.USAGE, f"{told}\n")

    def test_a_truth_value_is_shown_as_yes_or_no(self, run: Run) -> None:
        code, _, err = run("system.selfCheck", "--wait", "ok=true")
        assert (code, err) == (shell.USAGE, "ok is never 'true'; it is yes or no.\n")

    def test_what_may_be_is_waited_for(self, run: Run) -> None:
        for condition in ("count:=0", "count=0", "count!=3", "count:=0.0"):
            assert run("plugins.acme.widgets.count", "tenantId=t1", "--wait", condition)[0] == 0
        assert run("tenants.get", "tenantId=t1", "--wait", "changedAt=-")[0] == 0
        assert run("work.list", "--wait", "items:=[]")[0] == 0

    def test_progress_of_what_is_no_number(self, run: Run) -> None:
        ask = ("tenants.get", "tenantId=t1", "--wait", "state=active", "--progress")
        assert run(*ask, "state/reason")[::2] == (shell.USAGE, "--progress needs numbers, and state is none.\n")
        assert "has no 'done'" in run(*ask, "done/total")[2]

    def test_a_key_that_no_item_has(self, run: Run) -> None:
        queue("t1")
        code, _, err = run("work.list", "--watch", "--key", "kind,nope")
        assert code == shell.USAGE
        assert err.startswith("An item has no 'nope'; it has kind, key, shard")
        code, _, err = run("tenants.get", "tenantId=t1", "--watch", "--key", "state")
        assert (code, err) == (shell.USAGE, "tenants.get answers no list; --key tells the items of one apart.\n")


def documented() -> dict[int, str]:
    """The exit codes as the page's table has them."""
    rows = re.findall(r"^\| (\d+) \| (.+?) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {int(code): meaning for code, meaning in rows}


class TestExitCodes:
    def test_the_table_has_every_code_and_no_other(self) -> None:
        codes = {shell.DONE, shell.REFUSED, shell.USAGE, shell.NO_ANSWER, shell.NOT_REACHED, shell.INTERRUPTED}
        assert set(documented()) == codes
        assert set(map(int, re.findall(r"\b\d+\b", shell.EXIT_CODES))) == codes

    @pytest.mark.parametrize(
        ("line", "meaning"),
        [
            (("system.version",), "done"),
            (("work.requeue", "kind=acme.widgets", "key=nobody"), "refused"),
            (("work.list", "limit=3"), "the question was wrong"),
            (("work.list", "limit"), "the question was wrong"),
            (("work.lst",), "the question was wrong"),
            (("work.list", "--wait", "nope=0"), "the question was wrong"),
            (
                ("tenants.get", "tenantId=t1", "--wait", "state=deleting", "--timeout", "0.1s", "--every", "0.05s"),
                "what was waited for did not come",
            ),
        ],
    )
    def test_each_line_ends_as_the_table_says(self, run: Run, line: tuple[str, ...], meaning: str) -> None:
        code, _, err = run(*line)
        assert documented()[code].startswith(meaning), err

    def test_a_token_that_is_refused_is_a_wrong_question(
        self, running: Running, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(cli.URL, running.url)
        monkeypatch.setenv(cli.TOKEN, "nonsense")
        assert documented()[cli.main(["system.version"])].startswith("the question was wrong")


def manage(*words: str, environment: dict[str, str], **streams: Any) -> subprocess.CompletedProcess[str]:
    """A command of the example project in a process of its own."""
    command = [sys.executable, str(ROOT / "manage.py"), *words]
    return subprocess.run(command, cwd=ROOT, env=environment, text=True, check=False, **streams)


class TestAProcessOfItsOwn:
    @pytest.mark.parametrize(
        ("url", "told", "code"),
        [
            ("postgresql://nobody@127.0.0.1:9/x", "Start PostgreSQL, or correct DATABASES in the settings.", 3),
            ("", "Correct the settings; a variable of the environment that they read may be empty.", 2),
        ],
        ids=["away", "empty"],
    )
    @pytest.mark.parametrize(
        "words", [("compute", "api", "work.list"), ("compute", "paused"), ("compute_token", "list")]
    )
    def test_a_database_that_is_not_there_is_one_line(
        self, process_env: dict[str, str], url: str, told: str, code: int, words: tuple[str, ...]
    ) -> None:
        ran = manage(*words, environment={**process_env, "DATABASE_URL": url}, capture_output=True)
        assert ran.stderr.count("\n") == 1, ran.stderr
        assert ran.stderr.endswith(f"{told}\n")
        assert ran.returncode == (code if words[0] == "compute" else 2)

    @pytest.mark.parametrize(
        ("words", "code"), [(("compute_migrate", "--check"), 2), (("migrate", "--check"), 2), (("doctor",), 1)]
    )
    def test_settings_that_name_no_database_end_no_command_with_a_traceback(
        self, process_env: dict[str, str], words: tuple[str, ...], code: int
    ) -> None:
        ran = manage(*words, environment={**process_env, "DATABASE_URL": ""}, capture_output=True)
        assert ran.returncode == code, ran.stderr
        assert "Traceback" not in ran.stderr
        assert "improperly configured" in ran.stderr + ran.stdout

    def test_the_help_names_the_program_as_it_is_called(self, process_env: dict[str, str], running: Running) -> None:
        ran = manage("compute", "api", "--help", environment=process_env, capture_output=True)
        assert ran.stdout.startswith("usage: manage.py compute api [-h] ")
        assert shell.EXIT_CODES.split()[-1] in ran.stdout
        command = [sys.executable, "-m", "better_compute.client.cli", "--help"]
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
        assert ran.stdout.startswith("usage: better-compute [-h] ")

    def test_a_reader_that_is_gone_is_no_failure(self, process_env: dict[str, str]) -> None:
        reading, writing = os.pipe()
        os.close(reading)
        ran = manage("compute", "api", "system.version", environment=process_env, stdout=writing, stderr=-1)
        os.close(writing)
        assert (ran.returncode, ran.stderr) == (0, "")

    @pytest.mark.parametrize("words", [("compute",), ("compute", "paused")])
    def test_nor_is_it_for_any_other_command(self, process_env: dict[str, str], words: tuple[str, ...]) -> None:
        reading, writing = os.pipe()
        os.close(reading)
        ran = manage(*words, environment=process_env, stdout=writing, stderr=-1)
        os.close(writing)
        assert (ran.returncode, ran.stderr) == (0, "")

    @pytest.mark.parametrize("redirected", [">/dev/full", ">&-"])
    def test_an_answer_that_cannot_be_written_is_told(
        self, process_env: dict[str, str], running: Running, redirected: str
    ) -> None:
        environment = {**process_env, "PYTHONPATH": str(ROOT), cli.URL: running.url, cli.TOKEN: running.token}
        for program in ("-m better_compute.client.cli", f"{ROOT}/manage.py compute api"):
            line = f"{sys.executable} {program} system.version {redirected}"
            ran = subprocess.run(["sh", "-c", line], env=environment, capture_output=True, text=True, check=False)
            assert ran.returncode == shell.NO_ANSWER
            assert re.fullmatch(r"The answer cannot be written: .+\.\n", ran.stderr), ran.stderr

    def test_who_closed_standard_error_has_the_exit_code(self, process_env: dict[str, str], running: Running) -> None:
        environment = {**process_env, "PYTHONPATH": str(ROOT), cli.URL: running.url, cli.TOKEN: running.token}
        line = f"{sys.executable} -m better_compute.client.cli no.such 2>&-"
        ran = subprocess.run(["sh", "-c", line], env=environment, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stdout, ran.stderr) == (shell.USAGE, "", "")


class TestTables:
    ROWS = ({"kind": "acme.widgets", "error": "x" * 100, "shard": -1}, {"kind": "b", "error": None, "shard": 12})

    def test_a_program_is_given_everything(self) -> None:
        assert "x" * 100 in shell.as_table({"items": self.ROWS})

    @pytest.mark.parametrize("width", [120, 80, 40, 30])
    def test_a_terminal_is_never_wider_than_it_is(self, width: int) -> None:
        lines = shell.as_table({"items": self.ROWS}, width).splitlines()
        assert len(lines) == 3
        assert max(map(len, lines)) <= width

    def test_on_a_very_narrow_one_each_row_is_shown_line_by_line(self) -> None:
        lines = shell.as_table({"items": self.ROWS}, 20).splitlines()
        assert lines == [
            "kind   acme.widgets",
            f"error  {'x' * 100}",
            "shard  -1",
            "",
            "kind   b",
            "error  -",
            "shard  12",
        ]

    def test_wide_characters_are_cut_whole(self) -> None:
        assert shell.as_table({"items": [{"a": "日本語日本語", "b": 1}]}, 12).splitlines()[1] == "日本語日…  1"


def test_a_terminal_gets_a_table_that_fits(running: Running) -> None:
    queue("k" * 200)
    reading, writing = pty.openpty()
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "100",
        cli.URL: running.url,
        cli.TOKEN: running.token,
    }
    command = [sys.executable, "-m", "better_compute.client.cli", "work.list"]
    ran = subprocess.run(command, env=environment, stdin=writing, stdout=writing, stderr=writing, check=False)
    os.close(writing)
    shown = os.read(reading, 65536).decode()
    os.close(reading)
    assert ran.returncode == 0
    assert "\u2026" in shown
    assert max(map(len, shown.splitlines())) <= 100


def test_a_wait_in_process_outlasts_a_database_that_is_busy(
    running: Running, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from better_compute import ComputeError, ErrorCode
    from better_compute.envelope import call

    answers = iter([ComputeError(ErrorCode.STORAGE_BUSY, "busy", retry_after=0)])
    real = call.call

    def once_busy(*arguments: Any, **named: Any) -> Any:
        for refusal in answers:
            raise refusal
        return real(*arguments, **named)

    monkeypatch.setattr(call, "call", once_busy)
    ask = ("tenants.get", "tenantId=t1", "--wait", "state=active", "--every", "0.05s")
    call_command("compute", "api", *ask, stdout=io.StringIO())
    assert "active" in capsys.readouterr().out
    assert compute.api.tenants.get(Principal(id="internal/test", kind="internal"), {"tenantId": "t1"}).state == "active"
