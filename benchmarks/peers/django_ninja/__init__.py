"""The same API written with django-ninja: pydantic schemas for inputs and answers, its own router and JSON renderer.

The rules for inputs, the answers' bytes and the headers are ours; the database work is that of
:mod:`benchmarks.peers.same_work`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal

import ninja
from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI, Query, Schema
from ninja.renderers import JSONRenderer
from ninja.responses import NinjaJSONEncoder
from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from benchmarks.peers import same_work

CONFIGURATION = (
    f"django-ninja {ninja.__version__}, pydantic schemas for input and answer, its JSONRenderer with compact "
    "separators, no docs, no CSRF; token, transaction, statements and headers as ours"
)

Tenant = Annotated[str, Field(pattern=r"^[A-Za-z0-9._:-]{1,128}$")]


class Camel(Schema):
    """camelCase on the wire, unknown fields refused, as our inputs are."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")


class CountInput(Camel):
    """Whose widgets to count."""

    tenant_id: Tenant


class PokeInput(Camel):
    """Which widget to poke, and whose."""

    tenant_id: Tenant
    widget_id: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,64}$")]


class ListInput(Camel):
    """Which queued keys."""

    kind: Annotated[str, Field(pattern=r"^[a-z][a-z0-9._-]{0,63}$")]
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class Counted(Camel):
    """How many."""

    count: int


class Poked(Camel):
    """The widget."""

    poked: str


class Queued(Camel):
    """A queued key."""

    kind: str
    key: str
    shard: int
    generation: int
    not_before: datetime
    enqueued_at: datetime
    attempts: int
    last_error: str | None
    last_error_at: datetime | None


class QueuedPage(Camel):
    """A page of queued keys."""

    items: list[Queued]
    next_cursor: str | None


class Microseconds(NinjaJSONEncoder):
    """Django's encoder cuts times to milliseconds."""

    def default(self, o: Any) -> Any:
        return o.isoformat().replace("+00:00", "Z") if isinstance(o, datetime) else super().default(o)


class Compact(JSONRenderer):
    """The same bytes as ours: no spaces."""

    encoder_class = Microseconds
    json_dumps_params = {"separators": (",", ":")}


api = NinjaAPI(
    docs_url=None, openapi_url=None, renderer=Compact(), urls_namespace="ninja-peer", title="peer", version="1"
)


def served(
    request: HttpRequest,
    response: HttpResponse,
    kind: Literal["query", "mutation"],
    tenant_id: str | None,
    permission: str,
    work: Callable[[same_work.Open], Any],
) -> Any:
    """Do the work in one transaction."""
    secret = request.headers["Authorization"].removeprefix("Bearer ")
    with same_work.opened(secret, kind, tenant_id) as call:
        same_work.permitted(call, permission)
        answer = work(call)
    response["Cache-Control"] = "no-store"
    response["X-Content-Type-Options"] = "nosniff"
    response["X-Request-Id"] = call.request_id
    return answer


@api.get("widgets/count", response=Counted, by_alias=True)
def count(request: HttpRequest, response: HttpResponse, input: Query[CountInput]) -> Any:
    """The query."""
    work = lambda call: {"count": same_work.count(input.tenant_id)}  # noqa: E731
    return served(request, response, "query", input.tenant_id, "compute.acme:read", work)


@api.post("widgets/poke", response=Poked, by_alias=True)
def poke(request: HttpRequest, response: HttpResponse, input: PokeInput) -> Any:
    """The mutation."""

    def work(call: same_work.Open) -> Any:
        same_work.poke(call, input.tenant_id, input.widget_id)
        return {"poked": input.widget_id}

    return served(request, response, "mutation", input.tenant_id, "compute.acme:poke", work)


@api.get("work/list", response=QueuedPage, by_alias=True)
def list_(request: HttpRequest, response: HttpResponse, input: Query[ListInput]) -> Any:
    """The page."""
    work = lambda call: {"items": same_work.page(input.kind, input.limit), "next_cursor": None}  # noqa: E731
    return served(request, response, "query", None, "compute.work:read", work)
