"""The tree of tenants: where each stands, its state, and how far a teardown is."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import NoReverseMatch, URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from better_compute import ComputeError, ReadOnlyAdmin, compute, session_principal
from compute_modules.iam.models import PATH_TEXT, GrantRow, ScopedToken, TenantKind, TenantNode

from .page import Page, cut

_TONES: Final[dict[str, Any]] = {"active": "good", "suspended": "warn", "deleting": "warn", "blocked": "bad"}

#: Verbs that a page offers in a state; which are legal is the envelope's to say.
_OFFERED: Final = {"active": ("suspend", "delete"), "suspended": ("resume", "delete")}


class NewTenantForm(forms.Form):
    """A tenant below another one."""

    parent = forms.CharField(max_length=128, help_text="The tenant it stands below.")
    tenant = forms.CharField(max_length=128, help_text="Its id, which never changes.")
    kind = forms.ChoiceField(choices=[(kind.value, kind.label) for kind in TenantKind if kind is not TenantKind.ROOT])
    name = forms.CharField(max_length=128, help_text="How people call it.")
    owner = forms.CharField(
        max_length=255, required=False, help_text="Who is granted everything there, e.g. user/7. Empty: nobody yet."
    )

    def ask(self) -> dict[str, Any]:
        """The input of tenantTree.create."""
        wanted = self.cleaned_data
        return {
            "parentId": wanted["parent"],
            "tenantId": wanted["tenant"],
            "kind": wanted["kind"],
            "name": wanted["name"],
            "owner": wanted["owner"] or None,
        }


class BelowFilter(admin.SimpleListFilter):
    """A tenant with all that stand below it, which a link chooses."""

    title = "tenant and below"
    parameter_name = "below"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """The chosen one."""
        chosen = request.GET.get("below")
        return [(chosen, chosen)] if chosen else []

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Those whose path begins with the chosen one's."""
        chosen = self.value()
        if not chosen:
            return queryset
        placed = TenantNode.objects.annotate(path_text=PATH_TEXT).filter(pk=chosen)
        place = placed.values_list("path_text", flat=True).first()
        if place is None:
            return queryset.none()
        # The character behind the quotation mark: whatever begins with the path sorts below it.
        return queryset.filter(path_text__gte=place, path_text__lt=place[:-1] + "#")


@admin.register(TenantNode)
class TenantAdmin(Page):
    """The tree of tenants, with the state of each and how far a teardown is."""

    tenant_column = "id"
    tools = (("new_tenant", "Make a tenant"),)
    list_display = ("place", "kind", "name_column", "state", "teardown", "inside")
    fields = ("where", "kind", "name_column", "bound", "created", "state", "inside")
    list_filter = (BelowFilter,)
    search_fields = ("id",)
    search_help_text = "The beginning of a tenant's id"
    empty_text = "There is no tenant that you may see: it takes compute:iam:read in one."

    created = ReadOnlyAdmin.moment("created_at", "made")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Each tenant right after those above it."""
        rows: QuerySet[Any] = super().get_queryset(request).annotate(path_text=PATH_TEXT)
        return rows

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """By place."""
        return ("path_text",)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """By the beginning of the id, which the primary key's index gives."""
        term = search_term.strip()
        return (queryset.filter(id__startswith=term) if term else queryset), False

    def prepare(self, rows: list[Any]) -> None:
        """Read the states of all of them at once."""
        standings = compute.context("iam").tenants.standings([row.id for row in rows]) if rows else {}
        for row in rows:
            row.standing = standings.get(row.id)

    @admin.display(description="tenant")
    def place(self, obj: Any) -> SafeString:
        """The id, as far in as the tenant stands deep."""
        return format_html("{}{}", "\N{EM SPACE}" * (obj.depth - 1), cut(obj.id))

    @admin.display(description="name")
    def name_column(self, obj: Any) -> str:
        """The name."""
        return cut(obj.name)

    @admin.display(description="place")
    def where(self, obj: Any) -> SafeString:
        """The tenants above it, each leading to what stands below."""
        steps = ((self.list_url(below=id), id) for id in obj.path)
        return format_html_join(" \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} ", '<a href="{}">{}</a>', steps)

    @admin.display(description="ceiling")
    def bound(self, obj: Any) -> str:
        """What may be done there at all."""
        return "none" if obj.ceiling is None else ", ".join(obj.ceiling) or "nothing may be done"

    @admin.display(description="state")
    def state(self, obj: Any) -> SafeString:
        """The state, as a badge."""
        word = obj.standing.state if obj.standing else "active"
        return self.mark(word.replace("_", " "), _TONES.get(word, "quiet"))

    @admin.display(description="teardown")
    def teardown(self, obj: Any) -> SafeString | str:
        """Of one that is being deleted, how far it is and who blocks it."""
        standing = obj.standing
        if standing is None or standing.state != "deleting":
            return "-"
        passes = f"{standing.passes} {'pass' if standing.passes == 1 else 'passes'}"
        if not standing.blocked_by:
            return f"{passes}, blocked by nobody yet"
        return format_html("{}, blocked by {}", passes, cut(", ".join(standing.blocked_by)))

    @admin.display(description="inside")
    def inside(self, obj: Any) -> SafeString:
        """Leads to what belongs to it."""
        return format_html(
            '<a href="{}">below</a>, <a href="{}">grants</a>, <a href="{}">tokens</a>',
            self.list_url(below=obj.id),
            _list(self, GrantRow, obj.id),
            _list(self, ScopedToken, obj.id),
        )

    def get_urls(self) -> list[URLPattern]:
        """The form that makes one."""
        view = self.admin_site.admin_view
        return [path("new/", view(self.new_view), name="compute_iam_new_tenant"), *super().get_urls()]

    @ReadOnlyAdmin.outside_atomic_requests
    def new_view(self, request: HttpRequest) -> HttpResponse:
        """Call tenantTree.create."""
        form = NewTenantForm(request.POST or None, initial={"parent": request.GET.get("parent", "")})
        return self.act(
            request,
            form,
            lambda principal: compute.api.tenant_tree.create(principal, form.ask()),
            title="Make a tenant",
            submit="Make the tenant",
            done=lambda made: f"Made the tenant {made.id}.",
        )

    @ReadOnlyAdmin.outside_atomic_requests
    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """One tenant, with its teardown as ``tenants.deletionStatus`` tells it, and what can be done."""
        id = unquote(object_id)
        more: dict[str, Any] = {}
        phase = "active"
        if self.has_view_permission(request):
            try:
                more["deletion"] = deletion = compute.api.tenants.deletion_status(
                    session_principal(request.user), {"tenantId": id}
                )
                phase = deletion.phase
            except ComputeError as error:
                # A session that may not read the tenant's row at all is told so by the page itself.
                more["deletion_refused"] = f"{error.message} {error.mend}"
        more["verbs"] = self._verbs(id, phase)
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **more})

    def _verbs(self, tenant_id: str, phase: str) -> list[dict[str, str]]:
        verbs = [
            {"url": self.url("new_tenant", parent=tenant_id), "text": "Make a tenant below"},
            {"url": self.url("new_grant", tenant=tenant_id), "text": "Grant something here"},
            {"url": self.url("break_glass", tenant=tenant_id), "text": "Break the glass"},
        ]
        try:
            acts = reverse("admin:compute_tenancy_act", current_app=self.admin_site.name)
        except NoReverseMatch:
            return verbs
        for verb in _OFFERED.get(phase, ()):
            query = urlencode({"tenant": tenant_id, "verb": verb})
            verbs.append({"url": f"{acts}?{query}", "text": verb.capitalize()})
        return verbs


def _list(page: Page, model: Any, tenant_id: str) -> str:
    meta = model._meta
    url = reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist", current_app=page.admin_site.name)
    return f"{url}?{urlencode({'tenant': tenant_id})}"
