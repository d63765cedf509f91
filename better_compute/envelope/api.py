"""``compute.api``: every hosted method in process, through the same envelope as over HTTP (ruling 16)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from better_compute import registry
from better_compute.contract import names
from better_compute.contract.methods import MethodSpec
from better_compute.contract.ports import Principal
from better_compute.envelope import call


class Method:
    """One method, called as ``method(principal, input)``."""

    def __init__(self, spec: MethodSpec) -> None:
        self.spec = spec

    def __call__(self, principal: Principal, input: Any = None, *, request_id: str | None = None) -> Any:
        """Make the call; see :func:`better_compute.envelope.call.call`."""
        return call.call(self.spec, principal, input, request_id=request_id)

    def __repr__(self) -> str:
        return f"<compute.api.{self.spec.dotted}>"


class Branch(Mapping[str, Any]):
    """A node of the tree of names: groups, plugins or methods, by attribute or by key.

    Names are camelCase as on the wire; snake_case finds the same.
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
        return getattr(_tree(), name)

    def __getitem__(self, name: str) -> Any:
        return _tree()[name]

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_tree()})


_trees: dict[int, tuple[Any, Branch]] = {}


def _tree() -> Branch:
    hosted = registry.current()
    known = _trees.get(id(hosted))
    if known is None or known[0] is not hosted:
        _trees.clear()
        known = _trees[id(hosted)] = (hosted, _grow(hosted.methods))
    return known[1]


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
