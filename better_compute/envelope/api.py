"""``compute.api``: every hosted method in process, through the same envelope as over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from better_compute import registry
from better_compute.contract import names
from better_compute.contract.contexts import MethodContext
from better_compute.contract.errors import ComputeError, ErrorCode
from better_compute.contract.methods import MethodSpec
from better_compute.contract.principals import Principal
from better_compute.envelope import call

_Group = TypeVar("_Group")
_Input = TypeVar("_Input")
_Output = TypeVar("_Output")


class Method:
    """One method, called as ``method(principal, input)``."""

    def __init__(self, spec: MethodSpec) -> None:
        self.spec = spec

    def __call__(
        self,
        principal: Principal,
        input: Any = None,
        *,
        request_id: str | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> Any:
        """Make the call; see :func:`better_compute.envelope.call.call`."""
        return call.call(
            self.spec, principal, input, request_id=request_id, idempotency_key=idempotency_key, dry_run=dry_run
        )

    def __repr__(self) -> str:
        return f"<compute.api.{self.spec.dotted}>"


class Branch:
    """A node of the tree of names: groups, plugins or methods, by attribute or by key.

    Names are camelCase as on the wire; snake_case finds the same. It is no Mapping, whose ``get`` and ``items`` would
    stand before the methods of these names.
    """

    def __init__(self, name: str, members: Mapping[str, Any]) -> None:
        self._name = name
        self._members = dict(members)

    def __getitem__(self, name: str) -> Any:
        for form in (name, names.camel_case(name), name.replace("_", "-")):
            if form in self._members:
                return self._members[form]
        raise KeyError(name)

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            known = ", ".join(self._members) or "nothing"
            raise AttributeError(f"compute.{self._name} has no {name!r}; it has {known}.") from None

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._members})

    def __repr__(self) -> str:
        return f"<compute.{self._name}: {', '.join(self._members)}>"


class Api:
    """``api.<group>.<method>(principal, input)`` and ``api.plugins.<id>.<group>.<method>(principal, input)``.

    The tree follows the registry, also when a test hosts another one.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(_index().tree, name)

    def __getitem__(self, name: str) -> Any:
        return _index().tree[name]

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_index().tree})


@overload
def call_method(
    method: Callable[[_Group, MethodContext, _Input], _Output], principal: Principal, input: _Input
) -> _Output: ...


@overload
def call_method(method: Callable[[_Group, MethodContext], _Output], principal: Principal) -> _Output: ...


def call_method(method: Callable[..., Any], principal: Principal, input: Any = None) -> Any:
    """Call a method by its function, with types: ``call_method(Widgets.poke, principal, PokeInput(...))``.

    Raises
    ------
    ComputeError
        As :func:`better_compute.envelope.call.call`; INVALID_CONFIG when no hosted module offers the function.
    """
    specs = _index().by_function.get(method, ())
    if len(specs) != 1:
        raise ComputeError(
            ErrorCode.INVALID_CONFIG,
            f"{getattr(method, '__qualname__', method)!r} is offered by {len(specs)} hosted methods, not by one.",
            mend="Host the module it belongs to; call an inherited method by name, through compute.api.",
        )
    return call.call(specs[0], principal, input)


@dataclass(frozen=True, slots=True)
class _Index:
    """What one registry's methods can be found by."""

    hosted: registry.Registry
    tree: Branch
    by_function: Mapping[Callable[..., Any], Sequence[MethodSpec]]


_current: _Index | None = None


def _index() -> _Index:
    global _current
    hosted = registry.current()
    known = _current
    if known is None or known.hosted is not hosted:
        by_function: dict[Callable[..., Any], list[MethodSpec]] = {}
        for spec in hosted.methods.values():
            by_function.setdefault(getattr(spec.viewset, spec.attribute), []).append(spec)
        known = _current = _Index(hosted, _grow(hosted.methods), by_function)
    return known


def _grow(methods: Mapping[str, MethodSpec]) -> Branch:
    nested: dict[str, Any] = {"plugins": {}}
    for spec in methods.values():
        place = nested
        *branches, leaf = spec.path.split("/")
        for branch in branches:
            place = place.setdefault(branch, {})
        place[leaf] = Method(spec)
    return _branch("api", nested)


def _branch(name: str, nested: Mapping[str, Any]) -> Branch:
    return Branch(
        name,
        {key: _branch(f"{name}.{key}", value) if isinstance(value, dict) else value for key, value in nested.items()},
    )
