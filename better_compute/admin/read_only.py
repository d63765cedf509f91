"""The base of every page of a core table: it shows, it is bounded, and it changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import SEARCH_VAR
from django.db import DatabaseError, connections
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from better_compute.admin import ages, texts
from better_compute.admin.changelist import WindowChangeList
from better_compute.admin.failure import finding_of
from better_compute.admin.filters import ExactFilter, exactly
from better_compute.envelope.authorize import tenants_allowed
from better_compute.envelope.identity import session_principal
from better_compute.store import overview
from better_compute.store.clock import ComputeNow

#: Aliases for Django's ``_non_atomic_requests``: these views open the transactions they need themselves.
ALL_ALIASES: Final = frozenset(connections.settings)


if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Any]
else:
    # Generic for type checkers only, as long as Django's own class is not.
    _ModelAdmin = admin.ModelAdmin


_View = TypeVar("_View", bound=Callable[..., Any])


def outside_atomic_requests(view: _View) -> _View:
    """Keep a host's ATOMIC_REQUESTS off a view."""
    view._non_atomic_requests = set(ALL_ALIASES)  # type: ignore[attr-defined]
    return view


class ReadOnlyAdmin(_ModelAdmin):
    """Lists in index order without counting, shows every field read-only, and offers no change at all."""

    actions: Any = None
    #: What an empty list says, why it is empty, or what would fill it.
    empty_text = "Nothing here."
    #: Column of the tenant that a row belongs to, and the action that reading it is; then only rows of tenants in which
    #: the session may do that action are there, as over REST. Without them the page's view permission shows every row.
    tenant_column = ""
    read_action = ""
    change_list_template = "compute/change_list.html"
    change_form_template = "compute/change_form.html"
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    list_per_page = 100
    list_max_show_all = 0
    sortable_by = ()

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Never."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never."""
        return False

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        """Every field that is shown."""
        return list(self.get_fields(request, obj))

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """The declared fields, else all columns."""
        return list(self.fields or [field.name for field in self.model._meta.fields])

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        """Only this page's filters, which an index serves; any other lookup in an address is refused."""
        return lookup in {getattr(chosen, "parameter_name", None) for chosen in self.list_filter}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """All rows, each with the time of the database at which it was read."""
        rows: QuerySet[Any] = self.model._default_manager.annotate(read_at=ComputeNow())
        if not self.read_action:
            return rows
        allowed = tenants_allowed(session_principal(request.user), self.read_action)
        return rows if allowed is None else rows.filter(**{f"{self.tenant_column}__in": allowed})

    def prepare(self, rows: list[Any]) -> None:
        """Read at once what the columns of ``rows`` need beside them; nothing by default."""

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """The row, prepared; None for one that is not there for this session."""
        if "\x00" in object_id:
            # No row has one in its key, and PostgreSQL takes no text that holds one.
            return None
        found = super().get_object(request, object_id, from_field)
        if found is not None:
            self.prepare([found])
        return found

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[WindowChangeList]:
        """The list that never counts."""
        return WindowChangeList

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """The list; an address that asks for a NUL, which no row holds, leads to the whole list as a wrong one does."""
        asked = (value for name, values in request.GET.lists() if name != SEARCH_VAR for value in values)
        if any("\x00" in value for value in asked):
            raise IncorrectLookupParameters
        return super().get_changelist_instance(request)

    def object_id(self, obj: Any) -> str:
        """What stands for a row in URLs."""
        return str(obj.pk)

    @outside_atomic_requests
    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list, read within a bounded transaction."""
        more = {"empty_text": self.empty_text, **(extra_context or {})}
        return self._bounded(request, lambda: super(ReadOnlyAdmin, self).changelist_view(request, more))

    @outside_atomic_requests
    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """One row, read within a bounded transaction."""
        return self._bounded(
            request,
            lambda: super(ReadOnlyAdmin, self).changeform_view(request, object_id, form_url, extra_context),
        )

    def _bounded(self, request: HttpRequest, view: Callable[[], HttpResponse]) -> HttpResponse:
        try:
            with overview.bounded():
                response = view()
                # Rendered here, because a template's own queries must not outlive the bound.
                if isinstance(response, TemplateResponse):
                    texts.unveil(response.render())
                return response
        except DatabaseError as error:
            return self._unavailable(request, error)

    def _unavailable(self, request: HttpRequest, error: DatabaseError) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": self.model._meta.verbose_name_plural,
            "opts": self.model._meta,
            "finding": finding_of(f"admin.{self.model._meta.model_name}", error),
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "compute/unavailable.html", context, status=503).render()

    def list_url(self, **query: object) -> str:
        """Address of this list, filtered."""
        return list_url(self.admin_site, self.model, **query)

    # For pages of modules, which import only public names.

    @staticmethod
    def moment(field: str, description: str = "") -> Callable[[ReadOnlyAdmin, Any], object]:
        """A column that shows a timestamp field as an age with the timestamp beside it."""
        return moment(field, description)

    @staticmethod
    def line(value: str, limit: int = texts.CELL) -> str:
        """Text that anybody may have written, for a cell: one line, unseen characters written out, cut at ``limit``."""
        return texts.line(value, limit)

    @staticmethod
    def text(value: str) -> str:
        """The same in full, with its lines."""
        return texts.text(value)

    @staticmethod
    def mark(word: str, tone: Tone = "quiet") -> SafeString:
        """A word that tells a state, as a badge."""
        return mark(word, tone)

    @staticmethod
    def outside_atomic_requests(view: _View) -> _View:
        """Keep a host's ATOMIC_REQUESTS off a view: a call opens a transaction of its own."""
        return outside_atomic_requests(view)

    @staticmethod
    def exactly(column: str, title: str = "", parameter: str = "", choices: Sequence[str] = ()) -> type[ExactFilter]:
        """A filter for one value of a column, offered among ``choices`` or chosen by a link."""
        return exactly(column, title or column, parameter or column, choices)


#: What a word that tells a state says to an operator, for its colour.
Tone = Literal["good", "info", "warn", "bad", "quiet"]


def mark(word: str, tone: Tone = "quiet") -> SafeString:
    """A word that tells a state, as a badge."""
    return format_html('<span class="compute-mark compute-{}">{}</span>', tone, word)


def list_url(site: admin.AdminSite, model: type[Model], **query: object) -> str:
    """Address of a model's list on a site, filtered."""
    meta = model._meta
    url = reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist", current_app=site.name)
    return f"{url}?{urlencode(query)}" if query else url


def link(url: str, text: object) -> SafeString:
    """A link."""
    return format_html('<a href="{}">{}</a>', url, text)


def pretty(value: object) -> SafeString:
    """JSON with indents, in a box that scrolls."""
    shown = texts.text(json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False))
    return format_html('<pre class="compute-json" tabindex="0">{}</pre>', shown)


def moment(field: str, description: str = "") -> Callable[[ReadOnlyAdmin, Any], object]:
    """A column that shows a timestamp field as an age with the timestamp beside it."""

    @admin.display(description=description or field.replace("_", " "))
    def column(self: ReadOnlyAdmin, obj: Any) -> object:
        value: datetime | None = getattr(obj, field)
        return ages.moment_html(value, obj.read_at)

    return column
