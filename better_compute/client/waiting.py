"""``--wait`` and ``--watch`` of the command lines: look at a query until it says what was waited for, or for ever."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from better_compute.client import shell
from better_compute.client.attempts import TRANSIENT
from better_compute.client.errors import ApiError, ConnectionLost
from better_compute.client.options import Options
from better_compute.client.progress import Progress
from better_compute.client.shapes import Shape
from better_compute.client.shell import Misused
from better_compute.client.watch import Asker, Watch
from better_compute.client.watching import Change, Watching

#: Seconds between two looks while something changes, unless told otherwise.
EVERY_S: Final = 2.0
#: Longest wait between two looks, in seconds: somebody sits before it.
AT_MOST_S: Final = 10.0
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SIGNS: Final = {"added": "+", "changed": "~", "gone": "-"}


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options."""
    parser.add_argument(
        "--wait", action="append", metavar="name=text", help="look until a member of the answer is so; != and := too"
    )
    parser.add_argument("--unless", action="append", metavar="name=text", help="give up waiting when a member is so")
    parser.add_argument("--timeout", metavar="10m", help="give up waiting after so long")
    parser.add_argument("--progress", metavar="done/total", help="members of the answer that tell how much is done")
    parser.add_argument("--watch", action="store_true", help="go on showing what changes, until interrupted")
    parser.add_argument("--key", metavar="name[,name]", help="members that tell the items of a watched list apart")
    parser.add_argument("--every", metavar="2s", help="how often to look while something changes; 2s without it")


def wanted(options: argparse.Namespace) -> bool:
    """Whether there is more to do than one call."""
    for option, needs in (("unless", "wait"), ("timeout", "wait"), ("progress", "wait"), ("key", "watch")):
        if getattr(options, option) and not getattr(options, needs):
            raise Misused(f"--{option} goes with --{needs}.")
    if options.every is not None and not (options.wait or options.watch):
        raise Misused("--every goes with --wait or --watch.")
    if options.wait and options.watch:
        raise Misused("--wait ends and --watch does not; give one of them.")
    return bool(options.wait or options.watch)


def run(
    asker: Asker, input: Mapping[str, Any], given: argparse.Namespace, *, document: Mapping[str, Any], asked: Options
) -> int:
    """Wait or watch, and return the exit code; ``document`` is the OpenAPI document, which has the method."""
    if shell.is_mutation(document, given.method):
        raise Misused(f"{given.method} changes something; --wait and --watch are for what only looks.")
    every = EVERY_S if given.every is None else seconds("--every", given.every)
    watching = Watching(every_s=every, at_most_s=max(every, AT_MOST_S))
    answer = Shape.of_answer(document, given.method)
    if given.watch:
        listed = shell.is_list(document, given.method)
        if given.key and not listed:
            raise Misused(f"{given.method} answers no list; --key tells the items of one apart.")
        identify = _identify(given.key, answer.at("items").items()) if listed else None
        watch: Watch[Any] = Watch(
            _Telling(asker, _aside, lambda: _aside("it answers again")),
            given.method,
            input,
            listed=listed,
            identify=identify,
            watching=watching,
            options=asked,
        )
        return _watch(watch, as_json=given.json)
    with Progress() as progress:
        telling = _Telling(asker, progress.interrupt, progress.resume)
        watch = Watch(telling, given.method, input, watching=watching, options=asked)
        return _wait(watch, progress, given, answer)


def _aside(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _watch(watch: Watch[Any], *, as_json: bool) -> int:
    try:
        for shown in watch:
            shell.printed((_line(shown) if as_json else _told(shown)) + "\n")
    except KeyboardInterrupt:
        return shell.INTERRUPTED
    return shell.DONE


def _line(shown: Any) -> str:
    """One line of JSON."""
    if isinstance(shown, Change):
        shown = {"change": shown.kind, "id": shown.id, "item": shown.item}
    return shell.printable(msgspec.json.encode(shown).decode())


def _told(shown: Any) -> str:
    if not isinstance(shown, Change):
        return shell.as_table(shown, shell.columns()) + "\n"
    members = shown.item.items() if isinstance(shown.item, Mapping) else ()
    before = shown.before if isinstance(shown.before, Mapping) else {}
    # Of what changed only what is another now.
    told = [f"{shell.cell(name)}={shell.cell(value)}" for name, value in members if before.get(name) != value]
    return " ".join([_SIGNS[shown.kind], shell.cell(shown.id), *told])


def _wait(watch: Watch[Any], progress: Progress, given: argparse.Namespace, shape: Shape) -> int:
    reached = [Condition.of(each) for each in given.wait]
    failed = [Condition.of(each) for each in given.unless or ()]
    timeout_s = None if given.timeout is None else seconds("--timeout", given.timeout)
    share = _share(given.progress, shape)
    # What the answer never says would be waited for in vain.
    for condition in (*reached, *failed):
        condition.refuse_unless_possible(shape)
    names = [condition.name for condition in (*reached, *failed)]

    def ends(answer: Any) -> bool:
        now = ", ".join(f"{name} {shell.cell(member(answer, name))}" for name in dict.fromkeys(names))
        progress.show(now, share=share(answer))
        return all(each.holds(answer) for each in reached) or any(each.holds(answer) for each in failed)

    try:
        answer = watch.until(ends, timeout_s=timeout_s)
    except TimeoutError:
        progress.end()
        sys.stderr.write(f"{' and '.join(given.wait)} did not come within {given.timeout}.\n")
        return shell.NOT_REACHED
    except KeyboardInterrupt:
        return shell.INTERRUPTED
    progress.end()
    shell.printed((shell.as_json(answer) if given.json else shell.as_table(answer, shell.columns())) + "\n")
    if all(each.holds(answer) for each in reached):
        return shell.DONE
    met = next(text for text, each in zip(given.unless, failed, strict=True) if each.holds(answer))
    sys.stderr.write(f"{' and '.join(given.wait)} was waited for, and now {met}.\n")
    return shell.NOT_REACHED


class _Telling:
    """Asks, and tells of a look that got no answer, which a watch outlasts in silence."""

    def __init__(self, asker: Asker, away: Callable[[str], None], back: Callable[[], None]) -> None:
        self._asker, self._tell_away, self._tell_back, self._away = asker, away, back, False

    def call(self, method: str, input: Any, answer: Any, *, mutation: bool, options: Options) -> Any:
        """Call it."""
        try:
            answered = self._asker.call(method, input, answer, mutation=mutation, options=options)
        except (ApiError, ConnectionLost) as error:
            if isinstance(error, ConnectionLost) or error.problem.status in TRANSIENT:
                if not self._away:
                    self._tell_away(f"no answer yet, looking again: {shell.cell(str(error))}")
                self._away = True
            raise
        if self._away:
            self._tell_back()
        self._away = False
        return answered


@dataclass(frozen=True, slots=True)
class Condition:
    """What a member of an answer is to be, or not to be."""

    name: str
    value: Any
    #: Compare as JSON instead of as text.
    exactly: bool
    negated: bool

    @classmethod
    def of(cls, text: str) -> Condition:
        """Read ``name=text``, ``name!=text``, ``name:=json`` or ``name!:=json``."""
        name, sign, value = text.partition("=")
        exactly, name = name.endswith(":"), name.removesuffix(":")
        negated, name = name.endswith("!"), name.removesuffix("!")
        if not sign or not name:
            raise Misused(f"{text!r} is none of name=text, name!=text and name:=json.")
        try:
            return cls(name, msgspec.json.decode(value) if exactly else value, exactly, negated)
        except msgspec.DecodeError as error:
            raise Misused(f"What {name}:= is given is not JSON: {error}.") from None

    def refuse_unless_possible(self, answer: Shape) -> None:
        """Raise Misused where no answer of this shape has the member, or has it so."""
        found = answer.at(self.name)
        if self.exactly:
            found.refuse_value(self.name, self.value)
        else:
            found.refuse_text(self.name, self.value)

    def holds(self, answer: Any) -> bool:
        """Whether the answer is so."""
        found = member(answer, self.name)
        return (found == self.value if self.exactly else shell.cell(found) == self.value) is not self.negated


def member(answer: Any, path: str) -> Any:
    """``a.b`` is the member ``b`` of the member ``a``; None where there is none."""
    for step in path.split("."):
        answer = answer.get(step) if isinstance(answer, Mapping) else None
    return answer


def _share(names: str | None, answer: Shape) -> Callable[[Any], float | None]:
    if names is None:
        return lambda _: None
    done_name, sign, total_name = names.partition("/")
    if not (sign and done_name and total_name):
        raise Misused(f"--progress {names!r} does not name two members, done/total.")
    for name in (done_name, total_name):
        types = answer.at(name).types()
        if types and not {"integer", "number"} & set(types):
            raise Misused(f"--progress needs numbers, and {name} is none.")

    def share(answer: Any) -> float | None:
        done, total = member(answer, done_name), member(answer, total_name)
        if not isinstance(done, int | float) or not isinstance(total, int | float) or total <= 0:
            return None
        return done / total

    return share


def _identify(key: str | None, item: Shape) -> Callable[[Any], str] | None:
    if key is None:
        return None
    names: Sequence[str] = key.split(",")
    for name in names:
        item.at(name, "An item")

    def identify(item: Any) -> str:
        return "/".join(shell.cell(member(item, name)) for name in names)

    return identify


def seconds(option: str, text: str) -> float:
    """``90s``, ``10m``, ``2h``, ``1d`` or a number of seconds."""
    number, unit = (text[:-1], _UNITS[text[-1]]) if text[-1:] in _UNITS else (text, 1)
    try:
        found = float(number) * unit
    except ValueError:
        found = 0.0
    if not 0 < found < 366 * 86400:
        raise Misused(f"{option} is {text!r}; give 90s, 10m or 2h.")
    return found
