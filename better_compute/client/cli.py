"""``better-compute``: call an installation from a shell, over HTTP."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from better_compute.client import calling, completing, shell
from better_compute.client.errors import ApiError, BadAnswer, ConnectionLost

if TYPE_CHECKING:
    from better_compute.client.transport import Transport

PROGRAM: Final = "better-compute"
URL: Final = "BETTER_COMPUTE_URL"
TOKEN: Final = "BETTER_COMPUTE_TOKEN"  # noqa: S105 - the variable's name


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Call a method of an installation: better-compute work.list kind=acme.widgets limit:=5",
        epilog=f"The installation is ${URL}, the token ${TOKEN}. {shell.EXIT_CODES}",
        allow_abbrev=False,
    )
    calling.arguments(made)
    made.add_argument("--url", default=os.environ.get(URL, ""), help=f"where the installation is, instead of ${URL}")
    made.add_argument("--token-file", type=Path, help=f"file with the token, instead of ${TOKEN}")
    made.add_argument("--completion", choices=sorted(completing.SCRIPTS), help="print the completion for a shell")
    made.add_argument("--complete", action="store_true", help=argparse.SUPPRESS)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if sys.stderr is None:
        # It was closed (2>&-), and so nobody wants to be told anything.
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for as long as the process is
    if words[:2] == ["--complete", "--"]:
        return _complete(words[2:])
    given = parser().parse_intermixed_args(words)
    try:
        if given.completion:
            return shell.printed(completing.SCRIPTS[given.completion])
        with _transport(given.url, given.token_file) as transport:
            return calling.run(transport, given, PROGRAM)
    except (shell.Misused, ValueError) as error:
        return calling.complain(str(error), shell.USAGE)
    except ConnectionLost as error:
        mend = f"Check ${URL} and that the installation runs."
        return calling.complain(f"No answer from {given.url}: {error}\n  {mend}", shell.NO_ANSWER)
    except (ApiError, BadAnswer) as error:
        told = str(error).removeprefix(": ")
        mend = f"Check ${URL}: something else answers there, or a proxy before it."
        return calling.complain(
            f"{given.url} did not answer as an installation does: {shell.printable(told)}\n  {mend}", shell.NO_ANSWER
        )
    except KeyboardInterrupt:
        return calling.interrupted()
    except BrokenPipeError:
        return shell.read_enough()


def _transport(url: str, token_file: Path | None, **settings: Any) -> Transport:
    if not url.startswith(("http://", "https://")):
        raise shell.Misused(f"The installation's address is {url!r}. Set ${URL}, or give --url https://...")
    token = _token(token_file)
    try:
        from better_compute.client.transport import Transport
    except ImportError:
        raise shell.Misused("httpx is missing; install better-compute[client].") from None
    return Transport(url, token, **settings)


def _token(file: Path | None) -> str:
    """The token; what is wrong with it is told without showing it."""
    where, mend = (f"${TOKEN}", "Set it anew") if file is None else (str(file), "Write the file anew")
    try:
        token = os.environ.get(TOKEN, "") if file is None else file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise shell.Misused(f"The token file cannot be read: {error}.") from None
    except UnicodeDecodeError:
        raise shell.Misused(f"The token file {file} is no text. {mend}, with the token alone.") from None
    if not token:
        if file is not None:
            raise shell.Misused(f"The token file {file} is empty. {mend}, with the token alone.")
        raise shell.Misused(f"There is no token. Set ${TOKEN}, or give --token-file.")
    for index, character in enumerate(token):
        if not "!" <= character <= "~":
            raise shell.Misused(
                f"The token in {where} is none: character {index + 1} of {len(token)} is {_named(character)}, "
                f"which no token has. {mend}, with the token alone."
            )
    return token


def _named(character: str) -> str:
    known = {"\n": "a line break", "\r": "a carriage return", "\t": "a tab", " ": "a space"}
    return known.get(character, f"U+{ord(character):04X}")


def _complete(words: Sequence[str]) -> int:
    """Answer a shell's completion; silent when the installation does not answer in time."""
    try:
        command = parser()
        given = completing.split(command, words[:-1])[1]
        file = Path(given["--token-file"]) if "--token-file" in given else None
        with _transport(given.get("--url", os.environ.get(URL, "")), file, timeout_s=2.0, retries=0) as transport:
            found = completing.offered(transport.document(), words, command)
    except Exception:
        return shell.NO_ANSWER
    sys.stdout.write("".join(f"{each}\n" for each in found))
    return shell.DONE


if __name__ == "__main__":
    sys.exit(main())
