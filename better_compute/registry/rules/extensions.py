"""Extensions of modules and of the settings: built by a helper, unique, and no usage sink."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from django.core.checks import CheckMessage

from better_compute.contract import names
from better_compute.contract.extensions import Extension, built_by_helper
from better_compute.contract.module import ModuleSpec
from better_compute.registry import ids
from better_compute.registry.problem import error, setting_error, shown, titled
from better_compute.registry.settings_extensions import Given

_Refuse = Callable[[str, str, str], CheckMessage]


def check(specs: Sequence[ModuleSpec], given: Sequence[Given]) -> Iterator[CheckMessage]:
    """Judge the extensions ``given`` in the settings and those the modules bring."""
    first: dict[str, str] = {}
    for each in given:
        yield from _given(each, first)
    for spec in specs:
        for extension in spec.extensions:

            def refuse(id: str, what: str, mend: str, spec: ModuleSpec = spec) -> CheckMessage:
                return error(id, spec, what, mend)

            yield from _judge(extension, titled(spec).lower(), refuse, first)


def _given(each: Given, first: dict[str, str]) -> Iterator[CheckMessage]:
    def refuse(id: str, what: str, mend: str) -> CheckMessage:
        return setting_error(id, f"{each.place}: {what}", mend)

    if built_by_helper(each.value) and each.value.kind != each.kind:
        yield refuse(
            ids.EXTENSION_BUILT,
            f"extension {each.value.key} is no {each.kind}.",
            f"List only extensions built with define_{each.kind.replace('-', '_')}() there.",
        )
        return
    yield from _judge(each.value, each.place, refuse, first)


def _judge(value: object, place: str, refuse: _Refuse, first: dict[str, str]) -> Iterator[CheckMessage]:
    if not (isinstance(value, Extension) and built_by_helper(value)):
        yield refuse(
            ids.EXTENSION_BUILT,
            f"extension {shown(value)} was not built with a define_* helper.",
            "Build it with define_driver(), define_event_sink() or the helper of its kind.",
        )
        return
    if value.kind == "usage-sink":
        yield refuse(
            ids.USAGE_SINK,
            f"usage sink {shown(value.id)} is refused.",
            "Remove it: usage goes to billing through the IAM bridge.",
        )
        return
    well_formed = True
    for what, pattern in (("id", names.EXTENSION_ID), ("version", names.EXTENSION_VERSION)):
        part = getattr(value, what)
        if not names.matches(pattern, part):
            well_formed = False
            yield refuse(
                ids.EXTENSION_NAME,
                f"the {what} {shown(part)} of a {value.kind} does not match ^{pattern.pattern}$.",
                f"Give it {'an id such as acme-power' if what == 'id' else 'a version such as 1.0'}.",
            )
    if not well_formed:
        return
    # A port is reached by its id, so another version of it would never be found.
    taken = value.key if value.kind != "port" else f"port:{value.id}"
    if taken in first:
        yield refuse(
            ids.DUPLICATE_EXTENSION,
            f"extension {value.key} is also brought by {first[taken]}.",
            "Keep one of the two, or give it another id or version.",
        )
    else:
        first[taken] = place
