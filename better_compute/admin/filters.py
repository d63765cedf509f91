"""Filters whose choices come from the registry, from an enumeration or from the address; never from a scan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from django.contrib.admin import ModelAdmin, SimpleListFilter
from django.db.models import QuerySet
from django.http import HttpRequest

from better_compute import registry
from better_compute.contract.errors import ComputeError


def hosted_kinds() -> list[str]:
    """The reconcilers hosted here, sorted; none when the registry refuses its modules."""
    try:
        return sorted(registry.current().reconcilers)
    except ComputeError:
        return []


def hosted_owners() -> list[str]:
    """The modules hosted here in their order; none when the registry refuses them."""
    try:
        return [module.name for module in registry.current().modules]
    except ComputeError:
        return []


class ExactFilter(SimpleListFilter):
    """One column, one value. The value in the address is always a choice, whether hosted here or not."""

    column: ClassVar[str]

    def known(self) -> list[str]:
        """Values to offer besides the one chosen."""
        return []

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> list[tuple[str, str]]:
        """The known values and the chosen one."""
        chosen = request.GET.get(str(self.parameter_name))
        values = self.known()
        if chosen and chosen not in values:
            values = [*values, chosen]
        return [(value, value) for value in values]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Rows whose column equals the chosen value."""
        value = self.value()
        return queryset.filter(**{self.column: value}) if value else queryset


def exactly(column: str, title: str, parameter: str, choices: Sequence[str] = ()) -> type[ExactFilter]:
    """An :class:`ExactFilter` of a column that offers ``choices``."""
    members = {
        "column": column,
        "title": title,
        "parameter_name": parameter,
        "known": lambda self: list(choices),
    }
    return type("ChosenFilter", (ExactFilter,), members)


class KindFilter(ExactFilter):
    """Work of one reconciler."""

    title = parameter_name = column = "kind"

    def known(self) -> list[str]:
        """Every hosted reconciler."""
        return hosted_kinds()


class OwnerFilter(ExactFilter):
    """Ledger records of one module."""

    title = "module"
    parameter_name = column = "owner"

    def known(self) -> list[str]:
        """Every hosted module."""
        return hosted_owners()


class TenantFilter(ExactFilter):
    """Rows of one tenant, which a link or the search chooses: there may be too many to list."""

    title = "tenant"
    parameter_name = "tenant"
    column = "tenant_id"


class HolderFilter(ExactFilter):
    """Leases of one member, which a link chooses."""

    title = parameter_name = column = "holder"


class PrincipalFilter(ExactFilter):
    """Rows of one principal, which a link chooses."""

    title = parameter_name = column = "principal"


class ChoiceFilter(SimpleListFilter):
    """The values of an enumeration, each with the condition that an index serves."""

    choices_offered: ClassVar[tuple[tuple[str, str], ...]]

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> Iterator[tuple[str, str]]:
        """The enumeration."""
        return iter(self.choices_offered)


class OutcomeFilter(ChoiceFilter):
    """Audit records by outcome."""

    title = parameter_name = "outcome"
    choices_offered = (("allowed", "allowed"), ("denied", "denied"), ("failed", "failed"))

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Rows of the chosen outcome."""
        return queryset.filter(outcome=self.value()) if self.value() else queryset


class FailingFilter(ChoiceFilter):
    """Work that failed, the newest failure first."""

    title = "state"
    parameter_name = "state"
    choices_offered = (("failing", "failing"),)

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Rows with an error."""
        return queryset.filter(last_error_at__isnull=False) if self.value() else queryset
