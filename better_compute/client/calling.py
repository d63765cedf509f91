"""What both shells do with a line: a call, every page of a list, a wait, a watch, or the list of the methods."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, Final, Protocol

from better_compute.client import attempts, hints, listing, shell, waiting
from better_compute.client.errors import ApiError, BadAnswer, ConnectionLost
from better_compute.client.options import Options
from better_compute.client.progress import Progress
from better_compute.client.shell import Misused

#: Refusals of the question itself: asked again it is as wrong, whatever else changes.
WRONG: Final = frozenset({"INVALID_INPUT", "UNAUTHENTICATED"})

#: Arguments of the client, and the options that give them.
_OPTIONS: Final = {
    "`identify`": "--key",
    "idempotency_key": "--idempotency-key",
    "request_id": "--request-id",
}
_AS_OPTION: Final = re.compile("|".join(_OPTIONS))


class Installation(Protocol):
    """What a shell speaks to: a :class:`~better_compute.client.Transport`, or the server's own process."""

    def call(self, method: str, input: Any, answer: Any = Any, *, mutation: bool = True, options: Options) -> Any:
        """Call ``method``; every refusal is an ApiError."""

    def document(self) -> Any:
        """The OpenAPI document of what is hosted."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options that both shells have."""
    parser.add_argument("method", nargs="?", help="dotted name, as --list shows it")
    parser.add_argument("input", nargs="*", default=[], metavar="name=text|name:=json", help="the method's input")
    parser.add_argument("--json", action="store_true", help="answer as JSON instead of a table")
    parser.add_argument("--all", action="store_true", help="of a list, every page")
    parser.add_argument("--dry-run", action="store_true", help="make every check and keep nothing")
    parser.add_argument("--idempotency-key", help="repeat a call under this key safely; a fresh one is used without it")
    parser.add_argument("--request-id", help="names the call in the server's logs")
    waiting.arguments(parser)
    parser.add_argument(
        "--list", action="store_true", help="list the methods that begin with METHOD, and what METHOD takes"
    )


def run(installation: Installation, given: argparse.Namespace, program: str) -> int:
    """Do what the line asks and return the exit code; ``program`` is how the shell is called.

    Raises
    ------
    ConnectionLost, BadAnswer, ApiError
        No answer came, or none of an installation; such an ApiError has no code.
    """
    try:
        return _list(installation, given, program) if given.list else _call(installation, given, program)
    except Misused as error:
        return complain(str(error), shell.USAGE)
    except ApiError as error:
        if not error.code:
            raise
        told = "\n".join([explained(error), *(f"  {each}" for each in _hints(installation, given, error, program))])
        return complain(told, shell.USAGE if error.code in WRONG else shell.REFUSED)
    except ValueError as error:
        # What a watch cannot tell apart, and what no header carries.
        return complain(_AS_OPTION.sub(lambda name: _OPTIONS[name[0]], str(error)), shell.USAGE)
    except shell.Unwritten as error:
        return complain(str(error), shell.NO_ANSWER)
    except KeyboardInterrupt:
        return interrupted()
    except BrokenPipeError:
        return shell.read_enough()


def complain(text: str, code: int) -> int:
    """Say it on standard error, and return the exit code."""
    sys.stderr.write(f"{text}\n")
    return code


def interrupted() -> int:
    """Leave the line on which the terminal shows ^C, and return the exit code."""
    if sys.stderr.isatty():
        sys.stderr.write("\n")
    return shell.INTERRUPTED


def explained(error: ApiError) -> str:
    """A refusal with its mend, and when to come again."""
    wait = f"\n  again in {error.retry_after_s:g} s" if error.retry_after_s is not None else ""
    return shell.refusal(error.problem) + wait


def unknown(method: str, document: Mapping[str, Any], program: str) -> Misused:
    """That no method is named so, with those that come near."""
    near = get_close_matches(method, list(shell.methods(document)), n=3)
    hint = hints.meant(near) if near else f"`{program} --list` lists them."
    return Misused(f"No hosted module offers the method {shell.printable(method)!r}. {hint}")


def _call(installation: Installation, given: argparse.Namespace, program: str) -> int:
    if given.method is None:
        raise Misused(f"Name a method; `{program} --list` shows them.")
    input = shell.arguments(given.input)
    asked = Options(dry_run=given.dry_run, idempotency_key=given.idempotency_key, request_id=given.request_id)
    attempts.refuse_unsendable(asked)
    if waiting.wanted(given) or not attempts.is_method(given.method):
        document = installation.document()
        if given.method not in shell.methods(document):
            raise unknown(given.method, document, program)
        return waiting.run(installation, input, given, document=document, asked=asked)
    if given.dry_run:
        _refuse_trying_what_looks(installation.document(), given.method)
    try:
        answer = installation.call(given.method, input, options=asked)
    except ApiError as error:
        if error.code == "NOT_FOUND" and not error.reason:
            known = _known(installation)
            if known is not None and given.method not in shell.methods(known):
                raise unknown(given.method, known, program) from None
        raise
    if given.all:
        answer = _all(installation, given.method, input, asked, answer)
    code = show(answer, as_json=given.json)
    return complain("It was a dry run: nothing of this was kept.", code) if given.dry_run else code


def _refuse_trying_what_looks(document: Mapping[str, Any], method: str) -> None:
    if method in shell.methods(document) and not shell.is_mutation(document, method):
        raise Misused(f"{method} only looks and keeps nothing; leave --dry-run out.")


def _all(installation: Installation, method: str, input: dict[str, Any], asked: Options, page: Any) -> Any:
    """The answer with the items of every page behind it."""
    items = list(page["items"]) if isinstance(page, dict) and page.get("nextCursor") else None
    if items is None:
        return page
    with Progress() as progress:
        while page.get("nextCursor"):
            progress.show(f"{len(items)} items")
            page = installation.call(method, {**input, "cursor": page["nextCursor"]}, options=asked)
            items += page["items"]
    return {**page, "items": items}


def _list(installation: Installation, given: argparse.Namespace, program: str) -> int:
    document = installation.document()
    rows = listing.methods(document, given.method or "")
    if not rows:
        raise unknown(given.method, document, program)
    input = listing.fields(document, given.method) if given.method in shell.methods(document) else None
    if given.json:
        return show([{**row, "input": input} if row["method"] == given.method else row for row in rows], as_json=True)
    return show({"methods": rows, **({} if input is None else {f"input of {given.method}": input})}, as_json=False)


def show(answer: Any, *, as_json: bool) -> int:
    """Print an answer: JSON, or a table as wide as the terminal. Returns the exit code."""
    return shell.printed((shell.as_json(answer) if as_json else shell.as_table(answer, shell.columns())) + "\n")


def _known(installation: Installation) -> Any:
    """The document; None where it is not to be had, since then only a hint is missing."""
    with suppress(ApiError, BadAnswer, ConnectionLost):
        return installation.document()
    return None


def _hints(installation: Installation, given: argparse.Namespace, error: ApiError, program: str) -> Sequence[str]:
    if error.code != "INVALID_INPUT" or given.method is None:
        return []
    violations = error.problem.errors
    found = hints.of(given.input, violations, lambda: shell.fields(_known(installation) or {}, given.method))
    if any(hints.MISSING in each.detail for each in violations):
        found.append(f"`{program} --list {given.method}` shows every field.")
    return found
