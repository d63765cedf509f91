"""``POST /api/compute/plugins/acme/widgets/poke``."""

from typing import Annotated

from better_compute import ComputeViewSet, Input, Meta, MethodContext, Output, Resource, TenantId, compute_method

from .models import Widget


class PokeInput(Input):
    """Which widget to poke, and whose."""

    tenant_id: TenantId
    widget_id: Annotated[str, Meta(pattern=r"^[a-z0-9-]{1,64}$(?!\n)")]


class Poked(Output):
    """The widget that was poked."""

    poked: str


class CountInput(Input):
    """Whose widgets to count."""

    tenant_id: TenantId


class Counted(Output):
    """How many widgets the tenant has."""

    count: int


class Widgets(ComputeViewSet):
    """Widgets of a tenant."""

    @compute_method(action="compute:acme:poke", kind="mutation", resource=lambda i: Resource("tenant", i.tenant_id))
    def poke(self, ctx: MethodContext, input: PokeInput) -> Poked:
        """Make a widget, tell of it, and wake the reconciler for its tenant."""
        Widget.objects.create(id=input.widget_id, tenant_id=input.tenant_id)
        ctx.events.publish(
            type="acme.widget-poked",
            tenant_id=input.tenant_id,
            subject=f"widget/{input.widget_id}",
            data={"widgetId": input.widget_id},
        )
        ctx.work.enqueue("acme.widgets", input.tenant_id)
        return Poked(poked=input.widget_id)

    @compute_method(action="compute:acme:read", kind="query", resource=lambda i: Resource("tenant", i.tenant_id))
    def count(self, ctx: MethodContext, input: CountInput) -> Counted:
        """Count a tenant's widgets."""
        return Counted(count=Widget.objects.filter(tenant_id=input.tenant_id).count())
