"""``better-compute``: call an installation from a shell, over HTTP."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from better_compute.client import shell, waiting
from better_compute.client.errors import ApiError, BadAnswer, ConnectionLost
from better_compute.client.options import Options
from better_compute.client.progress import Progress

if TYPE_CHECKING:
    from better_compute.client.transport import Transport

URL: Final = "BETTER_COMPUTE_URL"
TOKEN: Final = "BETTER_COMPUTE_TOKEN"  # noqa: S105 - the variable's name

_BASH: Final = """\
_better_compute() {
  local IFS=$'\\n'
  COMPREPLY=($(better-compute --complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace
}
complete -F _better_compute better-compute
"""
_ZSH: Final = """\
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i }
_better_compute() {
  local -a found
  found=("${(@f)$(better-compute --complete -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
  compadd -S '' -- ${(M)found:#*=}
  compadd -- ${found:#*=}
}
compdef _better_compute better-compute
"""
_FISH: Final = """\
complete -c better-compute -f -a '(better-compute --complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
"""
_COMPLETION: Final = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="better-compute",
        description="Call a method of an installation: better-compute work.list kind=acme.widgets limit:=5",
        epilog=(
            f"The installation is ${URL}, the token ${TOKEN}. Exit codes: 0 done, 1 refused, 2 misuse, 3 no answer, "
            "4 what was waited for did not come, 130 interrupted."
        ),
        allow_abbrev=False,
    )
    made.add_argument("method", nargs="?", help="dotted name, as --list shows it")
    made.add_argument("input", nargs="*", default=[], metavar="name=text|name:=json", help="the method's input")
    made.add_argument("--json", action="store_true", help="answer as JSON instead of a table")
    made.add_argument("--all", action="store_true", help="of a list, every page")
    made.add_argument("--dry-run", action="store_true", help="make every check and keep nothing")
    made.add_argument("--idempotency-key", help="repeat a call under this key safely; a fresh one is used without it")
    made.add_argument("--request-id", help="names the call in the server's logs")
    waiting.arguments(made)
    made.add_argument("--url", default=os.environ.get(URL, ""), help=f"where the installation is, instead of ${URL}")
    made.add_argument("--token-file", type=Path, help=f"file with the token, instead of ${TOKEN}")
    made.add_argument("--list", action="store_true", help="list the methods, or those that begin with METHOD")
    made.add_argument("--completion", choices=sorted(_COMPLETION), help="print the completion for a shell")
    made.add_argument("--complete", action="store_true", help=argparse.SUPPRESS)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:2] == ["--complete", "--"]:
        return _complete(given[2:])
    options = parser().parse_intermixed_args(given)
    if options.completion:
        sys.stdout.write(_COMPLETION[options.completion])
        return shell.DONE
    try:
        with _transport(options.url, options.token_file) as transport:
            return _list(transport, options) if options.list else _call(transport, options)
    except shell.Misused as error:
        return _complain(str(error), shell.USAGE)
    except ApiError as error:
        return _complain(_explained(error), shell.REFUSED)
    except ConnectionLost as error:
        mend = f"Check ${URL} and that the installation runs."
        return _complain(f"No answer from {options.url}: {error}\n  {mend}", shell.NO_ANSWER)
    except BadAnswer as error:
        return _complain(f"{options.url} did not answer as an installation does: {error}", shell.NO_ANSWER)
    except ValueError as error:
        # What a watch cannot tell apart.
        return _complain(f"{error}".replace("`identify`", "--key"), shell.USAGE)
    except KeyboardInterrupt:
        return shell.INTERRUPTED
    except BrokenPipeError:
        # Whoever read has read enough; nothing may be written at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return shell.DONE


def _transport(url: str, token_file: Path | None, **settings: Any) -> Transport:
    if not url.startswith(("http://", "https://")):
        raise shell.Misused(f"The installation's address is {url!r}. Set ${URL}, or give --url https://...")
    try:
        token = os.environ.get(TOKEN, "") if token_file is None else token_file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise shell.Misused(f"The token file cannot be read: {error}.") from None
    if not token.isascii() or not token.isprintable() or not token:
        raise shell.Misused(f"There is no token. Set ${TOKEN}, or give --token-file.")
    try:
        from better_compute.client.transport import Transport
    except ImportError:
        raise shell.Misused("httpx is missing; install better-compute[client].") from None
    return Transport(url, token, **settings)


def _call(transport: Transport, options: argparse.Namespace) -> int:
    if options.method is None:
        raise shell.Misused("Name a method; `better-compute --list` shows them.")
    input = shell.arguments(options.input)
    asked = Options(dry_run=options.dry_run, idempotency_key=options.idempotency_key, request_id=options.request_id)
    try:
        if waiting.wanted(options):
            document = transport.document()
            mutation, listed = (tell(document, options.method) for tell in (shell.is_mutation, shell.is_list))
            return waiting.run(transport, input, options, mutation=mutation, listed=listed, asked=asked)
        answer = transport.call(options.method, input, options=asked)
        if options.all:
            answer = _all(transport, options.method, input, asked, answer)
    except ApiError as error:
        if error.code == "NOT_FOUND" and not error.reason:
            near = _near(transport, options.method)
            if near:
                return _complain(f"{_explained(error)}\n  Did you mean {' or '.join(near)}?", shell.REFUSED)
        raise
    sys.stdout.write((shell.as_json(answer) if options.json else shell.as_table(answer)) + "\n")
    return shell.DONE


def _all(transport: Transport, method: str, input: dict[str, Any], asked: Options, page: Any) -> Any:
    """The answer with the items of every page behind it."""
    items = list(page["items"]) if isinstance(page, dict) and page.get("nextCursor") else None
    if items is None:
        return page
    with Progress() as progress:
        while page.get("nextCursor"):
            progress.show(f"{len(items)} items")
            page = transport.call(method, {**input, "cursor": page["nextCursor"]}, options=asked)
            items += page["items"]
    return {**page, "items": items}


def _list(transport: Transport, options: argparse.Namespace) -> int:
    found = shell.methods(transport.document())
    rows = [
        {"method": name, "kind": operation["x-compute"]["kind"], "summary": operation.get("summary", "")}
        for name, operation in sorted(found.items())
        if name.startswith(options.method or "")
    ]
    sys.stdout.write((shell.as_json(rows) if options.json else shell.as_table({"methods": rows})) + "\n")
    return shell.DONE


def _near(transport: Transport, method: str) -> list[str]:
    known = list(shell.methods(transport.document()))
    return [] if method in known else get_close_matches(method, known, n=3)


def _complete(words: Sequence[str]) -> int:
    """Answer a shell's completion; silent when the installation does not answer in time."""
    try:
        with _transport(os.environ.get(URL, ""), None, timeout_s=2.0, retries=0) as transport:
            found = shell.completions(transport.document(), words, _options())
    except Exception:
        return shell.NO_ANSWER
    sys.stdout.write("".join(f"{each}\n" for each in found))
    return shell.DONE


def _options() -> list[str]:
    shown = (action for action in parser()._actions if action.help is not argparse.SUPPRESS)
    return [option for action in shown for option in action.option_strings if option.startswith("--")]


def _explained(error: ApiError) -> str:
    wait = f"\n  again in {error.retry_after_s:g} s" if error.retry_after_s is not None else ""
    return shell.refusal(error.problem) + wait


def _complain(text: str, code: int) -> int:
    sys.stderr.write(f"{text}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
