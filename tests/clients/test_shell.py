"""``better-compute`` and ``manage.py compute api``: what they print, and their exit codes."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from better_compute.client import cli, shell
from better_compute.store import transaction
from better_compute.store.work import WorkRow
from example_project.acme_widgets.models import Widget
from tests.clients.conftest import Running

ROOT = Path(__file__).parents[2]

db = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run(running: Running, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the command line against the server."""
    monkeypatch.setenv(cli.URL, running.url)
    monkeypatch.setenv(cli.TOKEN, running.token)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.main(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    return run


def queue(count: int) -> None:
    with transaction.transaction():
        transaction.enqueue([WorkRow("acme.widgets", f"t{number}", -1) for number in range(count)])


@db
class TestOverHttp:
    def test_a_mutation(self, run: Any) -> None:
        code, out, _ = run("plugins.acme.widgets.poke", "tenantId=t1", "widgetId=w1")
        assert (code, out) == (0, "poked  w1\n")
        assert Widget.objects.count() == 1

    def test_a_list_is_a_table(self, run: Any) -> None:
        queue(2)
        code, out, _ = run("work.list", "limit:=1")
        head, row = out.split("\n\n")[1].splitlines()
        assert code == 0
        assert head.split()[:2] == ["kind", "key"]
        assert row.split()[:2] == ["acme.widgets", "t0"]
        assert out.startswith("nextCursor  ")

    def test_all_pages_as_json(self, run: Any) -> None:
        queue(5)
        code, out, _ = run("work.list", "limit:=2", "--all", "--json")
        assert code == 0
        assert [each["key"] for each in json.loads(out)["items"]] == ["t0", "t1", "t2", "t3", "t4"]

    def test_a_refusal_says_where_and_how_to_mend(self, run: Any) -> None:
        code, out, err = run("plugins.acme.widgets.poke", "tenantId=t1", "widgetId=NO", "--request-id", "r1")
        assert (code, out) == (shell.USAGE, "")
        assert err.startswith("INVALID_INPUT: ")
        assert "  at /widgetId: " in err
        assert err.endswith("  request r1\n")

    def test_a_dry_run_keeps_nothing(self, run: Any) -> None:
        assert run("plugins.acme.widgets.poke", "tenantId=t1", "widgetId=w1", "--dry-run")[0] == 0
        assert Widget.objects.count() == 0

    def test_options_may_stand_between(self, run: Any) -> None:
        assert (
            run("--json", "plugins.acme.widgets.count", "--request-id", "r", "tenantId=t1")[1] == '{\n  "count": 0\n}\n'
        )

    def test_the_list_of_methods(self, run: Any) -> None:
        code, out, _ = run("--list", "plugins.")
        assert code == 0
        assert [line.split()[0] for line in out.splitlines()] == [
            "method",
            "plugins.acme.widgets.count",
            "plugins.acme.widgets.poke",
        ]

    def test_completion_of_methods_fields_and_options(self, run: Any) -> None:
        offered = ["work.list", "work.pause", "work.paused", "work.requeue", "work.resume"]
        assert run("--complete", "--", "work.")[1].split() == offered
        assert run("--complete", "--", "work.requeue", "")[1].split() == ["kind=", "key="]
        assert run("--complete", "--", "work.requeue", "kind=a", "k")[1].split() == ["key="]
        assert run("--complete", "--", "work.requeue", "--dry")[1].split() == ["--dry-run"]

    def test_completion_knows_what_follows_an_option(self, run: Any, running: Running, monkeypatch: Any) -> None:
        assert run("--complete", "--", "--request-id", "r1", "work.requeue", "ki")[1].split() == ["kind="]
        assert run("--complete", "--", "tenants.get", "--wait", "st")[1].split() == ["state="]
        assert run("--complete", "--", "--completion", "")[1].split() == ["bash", "fish", "zsh"]
        assert run("--complete", "--", "work.list", "--timeout", "")[1] == ""
        monkeypatch.delenv(cli.URL)
        assert run("--complete", "--", "--url", running.url, "work.req")[1].split() == ["work.requeue"]

    def test_a_token_from_a_file(self, run: Any, running: Running, tmp_path: Path, monkeypatch: Any) -> None:
        monkeypatch.delenv(cli.TOKEN)
        (tmp_path / "token").write_text(f"{running.token}\n")
        assert run("system.version", "--token-file", str(tmp_path / "token"))[0] == 0

    def test_a_bad_token_is_refused(self, run: Any, monkeypatch: Any) -> None:
        monkeypatch.setenv(cli.TOKEN, "nonsense")
        code, _, err = run("system.version")
        assert (code, err.partition(":")[0]) == (shell.USAGE, "UNAUTHENTICATED")

    def test_the_shells_complete_with_it(self, run: Any, running: Running, tmp_path: Path) -> None:
        program = tmp_path / "better-compute"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m better_compute.client.cli "$@"\n')
        program.chmod(0o755)
        script = (
            'eval "$(better-compute --completion bash)"; COMP_WORDS=(better-compute work.req); COMP_CWORD=1; '
            "_better_compute 2>/dev/null; echo ${COMPREPLY[@]}"
        )
        environment = {
            **os.environ,
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            cli.URL: running.url,
            cli.TOKEN: running.token,
        }
        ran = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=False)
        assert ran.stdout == "work.requeue\n", ran.stderr


class TestUsage:
    @pytest.fixture(autouse=True)
    def _somewhere(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(cli.URL, "http://127.0.0.1:9")
        monkeypatch.setenv(cli.TOKEN, "t")

    @pytest.mark.parametrize(
        ("arguments", "told"),
        [
            (["a.b", "limit"], "'limit' is neither name=text nor name:=json."),
            (["a.b", "limit:=x"], "What limit:= is given is not JSON"),
            (["a.b", "a=1", "a=2"], "a is given twice."),
            (["a.b", "a=1", "a.b=2"], "gives a member to what was given a value"),
            ([], "Name a method"),
            (["a.b", "--url", "example.com"], "The installation's address is 'example.com'."),
            (["a.b", "--token-file", "/nowhere"], "The token file cannot be read"),
            (["a.b", "--url", "http://h:x"], "The address of an installation is not 'http://h:x'"),
            (["a.b", "--request-id", "a b"], "--request-id is 'a b'"),
            (["a.b", "--idempotency-key", ""], "--idempotency-key is ''"),
            (["a.b", "--every", "3s"], "--every goes with --wait or --watch."),
            (["a.b", "x=\udcff"], "'x=\N{REPLACEMENT CHARACTER}' is no text: its bytes are not UTF-8."),
        ],
    )
    def test_what_is_wrong_is_said(self, arguments: list[str], told: str, capsys: Any) -> None:
        assert cli.main(arguments) == shell.USAGE
        assert told in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("token", "told"),
        [
            ("sesame\n", "character 7 of 7 is a line break, which no token has"),
            ("ses ame", "character 4 of 7 is a space, which no token has"),
            ("sésame", "character 2 of 6 is U+00E9, which no token has"),
            ("sesame\x7f", "character 7 of 7 is U+007F, which no token has"),
            ("", "There is no token. Set $BETTER_COMPUTE_TOKEN, or give --token-file."),
        ],
    )
    def test_what_can_be_no_token_is_told_without_it(
        self, token: str, told: str, capsys: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv(cli.TOKEN, token)
        assert cli.main(["a.b"]) == shell.USAGE
        said = capsys.readouterr().err
        assert told in said
        assert "ame" not in said
        (tmp_path / "token").write_bytes(b"\xff\xfe")
        assert cli.main(["a.b", "--token-file", str(tmp_path / "token")]) == shell.USAGE
        assert "is no text" in capsys.readouterr().err
        (tmp_path / "token").write_text("\n")
        assert cli.main(["a.b", "--token-file", str(tmp_path / "token")]) == shell.USAGE
        assert "is empty" in capsys.readouterr().err

    def test_no_answer_is_an_exit_code_of_its_own(self, capsys: Any, monkeypatch: Any) -> None:
        monkeypatch.setattr("better_compute.client.attempts.FIRST_WAIT_S", 0.001)
        assert cli.main(["a.b"]) == shell.NO_ANSWER
        assert "Check $BETTER_COMPUTE_URL" in capsys.readouterr().err


class TestOutput:
    def test_members_of_members(self) -> None:
        assert shell.arguments(["a.b=x", "a.c:=[1]", "d:=null"]) == {"a": {"b": "x", "c": [1]}, "d": None}

    def test_what_a_tenant_wrote_cannot_steer_the_terminal(self) -> None:
        hostile = "a\x1b[2J\x9b31m\u202eb\nc"
        assert shell.cell(hostile) == "a\ufffd[2J\ufffd31m\ufffdb\u2424c"
        assert "\x1b" not in shell.as_json({"a": hostile})
        assert "\x1b" not in shell.as_table({"items": [{hostile: hostile}]})

    def test_a_column_is_headed_as_the_options_name_it(self) -> None:
        assert shell.as_table({"items": [{"disabledAt": None}]}) == "disabledAt\n-"

    def test_wide_characters_keep_the_columns(self) -> None:
        lines = shell.as_table({"items": [{"a": "日本", "b": 1}, {"a": "xy", "b": 2}]}).splitlines()
        assert lines == ["a     b", "日本  1", "xy    2"]

    def test_an_empty_list(self) -> None:
        assert shell.as_table({"items": []}) == "none"
        assert shell.as_table({"ok": True, "findings": []}) == "ok  yes\n\nfindings\nnone"


@db
class TestInProcess:
    def run(self, *arguments: str, capsys: Any) -> tuple[int, str, str]:
        code = 0
        try:
            call_command("compute", "api", *arguments, stdout=io.StringIO())
        except SystemExit as ended:
            code = int(ended.code or 0)
        out, err = capsys.readouterr()
        return code, out, err

    def test_a_call(self, capsys: Any) -> None:
        poke = ("plugins.acme.widgets.poke", "tenantId=t1", "widgetId=w1")
        assert self.run(*poke, capsys=capsys) == (0, "poked  w1\n", "")
        code, _, err = self.run(*poke, capsys=capsys)
        assert (code, err.partition(":")[0]) == (1, "CONFLICT")
