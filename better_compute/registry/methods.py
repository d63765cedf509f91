"""Reads the methods of a module's groups: their declarations, and their types from the annotations."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import msgspec
from django.core.checks import CheckMessage

from better_compute.contract.methods import DECLARATION, Empty, MethodDeclaration, MethodGroup, MethodSpec
from better_compute.contract.module import ModuleSpec
from better_compute.registry import ids
from better_compute.registry.problem import error, shown

_SIGNATURE = "Write it as method(self, ctx, input: <Input>) -> <Output>, or method(self, ctx) -> <Output>."


class Refused(Exception):
    """A method cannot be offered as it is written; the text continues "its method ...", the mend stands alone."""

    def __init__(self, what: str, mend: str = _SIGNATURE) -> None:
        super().__init__(what)
        self.mend = mend


def read(spec: ModuleSpec, groups: list[type[MethodGroup]]) -> tuple[tuple[MethodSpec, ...], list[CheckMessage]]:
    """Freeze every declared method of ``groups``; one whose types cannot be read is a problem."""
    methods: list[MethodSpec] = []
    problems: list[CheckMessage] = []
    for group in groups:
        for attribute, function, declaration in declared(group):
            try:
                methods.append(_method(spec, group, attribute, function, declaration))
            except Refused as refusal:
                what = f"method {group.__name__}.{attribute} {refusal}"
                problems.append(error(ids.METHOD_SIGNATURE, spec, what, refusal.mend))
    return tuple(methods), problems


def declared(group: type[MethodGroup]) -> Iterator[tuple[str, Callable[..., Any], MethodDeclaration]]:
    """The methods that ``compute_method`` decorated, inherited ones first."""
    attributes: dict[str, Any] = {}
    for ancestor in reversed(group.__mro__):
        attributes.update(vars(ancestor))
    for attribute, function in attributes.items():
        declaration = getattr(function, DECLARATION, None)
        if isinstance(declaration, MethodDeclaration):
            yield attribute, function, declaration


def _method(
    spec: ModuleSpec,
    group: type[MethodGroup],
    attribute: str,
    function: Callable[..., Any],
    declaration: MethodDeclaration,
) -> MethodSpec:
    if not callable(declaration.resource):
        raise Refused(
            f"declares resource={shown(declaration.resource)}, which is no function.",
            'Write resource=lambda input: Resource("tenant", input.tenant_id).',
        )
    if declaration.kind not in ("mutation", "query"):
        raise Refused(
            f"declares kind={shown(declaration.kind)}, which is neither 'mutation' nor 'query'.",
            "Write kind='mutation', or kind='query' for a method that writes nothing.",
        )
    if not inspect.isfunction(function):
        raise Refused(f"is a {type(function).__name__}, not a plain function.")
    takes_input, input_type, output_type = _types(function)
    return MethodSpec(
        module=spec.name,
        plugin_id=spec.plugin_id,
        group=group.group_name(),
        attribute=attribute,
        action=declaration.action,
        kind=declaration.kind,
        resource=declaration.resource,
        input_type=input_type,
        takes_input=takes_input,
        output_type=output_type,
        summary=(inspect.getdoc(function) or "").partition("\n")[0],
        viewset=group,
        also_while=declaration.also_while,
        deprecated=declaration.deprecated,
    )


@lru_cache(maxsize=4096)
def _types(function: Callable[..., Any]) -> tuple[bool, type[Any], Any]:
    """Whether it takes an input, the type of that, and of its answer.

    Modules are read anew whenever settings change; what a function's annotations say stays, and most of a reading
    goes into it.
    """
    takes_input = _takes_input(function)
    return takes_input, _input_type(function) if takes_input else Empty, _output_type(function)


def _takes_input(function: Callable[..., Any]) -> bool:
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if len(parameters) not in (2, 3) or any(parameter.kind not in plain for parameter in parameters):
        raise Refused(f"takes {signature.replace(return_annotation=inspect.Signature.empty)}.")
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise Refused(
            "is a coroutine or a generator; a method answers with a value.", "Write it with `def`, and with `return`."
        )
    return len(parameters) == 3


def _annotation(function: Callable[..., Any], name: str) -> Any:
    # Only the annotation that matters is resolved: `ctx` may well be imported for type checkers alone.
    if name not in function.__annotations__:
        raise Refused(f"has no annotation for {name!r}.")
    one = SimpleNamespace(__annotations__={name: function.__annotations__[name]})
    namespace = inspect.unwrap(function).__globals__
    try:
        return typing.get_type_hints(one, globalns=namespace, include_extras=True)[name]
    except Exception as problem:
        raise Refused(f"has an annotation for {name!r} that cannot be resolved: {problem}.") from problem


def _input_type(function: Callable[..., Any]) -> type[Any]:
    name = list(inspect.signature(function).parameters)[2]
    annotation = _annotation(function, name)
    if not (isinstance(annotation, type) and issubclass(annotation, msgspec.Struct)):
        raise Refused(f"takes an input of {shown(annotation)}, which is no Input.")
    if not annotation.__struct_config__.forbid_unknown_fields:
        raise Refused(
            f"takes an input of {annotation.__name__}, which lets unknown fields pass.", "Derive it from Input."
        )
    _encodable(annotation, "input")
    return annotation


def _output_type(function: Callable[..., Any]) -> Any:
    annotation = _annotation(function, "return")
    _encodable(annotation, "return")
    return annotation


def _encodable(annotation: Any, what: str) -> None:
    try:
        msgspec.json.schema(annotation)
    except Exception as problem:
        # What msgspec refuses stands in its last line; the lines above it are advice for schemas.
        reason = str(problem).strip().rpartition("\n")[2].rstrip(".")
        raise Refused(f"has an annotation for {what!r} that msgspec cannot carry: {reason}.") from problem
