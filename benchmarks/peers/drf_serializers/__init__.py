"""The API of our example plugin and of the queue's list, written as Django REST framework's guide writes one.

An input serializer validates, an output serializer renders, JSONParser and JSONRenderer stand at the ends. The rules
for inputs, the answers' bytes and the headers are ours; the database work is that of :mod:`benchmarks.peers.same_work`.
"""

from __future__ import annotations

from typing import Any

from rest_framework import serializers, status
from rest_framework.parsers import JSONParser
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from benchmarks.peers import same_work

CONFIGURATION = (
    "djangorestframework APIView, Serializer for input and answer, JSONParser, JSONRenderer (compact, its default), no "
    "throttles, no browsable API; token, transaction, statements and headers as ours"
)
TENANT = r"^[A-Za-z0-9._:-]{1,128}\Z"


class CountInput(serializers.Serializer):  # type: ignore[type-arg]
    """Whose widgets to count."""

    tenantId = serializers.RegexField(TENANT, source="tenant_id", trim_whitespace=False)


class PokeInput(CountInput):
    """Which widget to poke, and whose."""

    widgetId = serializers.RegexField(r"^[a-z0-9-]{1,64}\Z", source="widget_id", trim_whitespace=False)


class ListInput(serializers.Serializer):  # type: ignore[type-arg]
    """Which queued keys."""

    kind = serializers.RegexField(r"^[a-z][a-z0-9._-]{0,63}\Z", trim_whitespace=False)
    limit = serializers.IntegerField(min_value=1, max_value=200, default=50)


class Counted(serializers.Serializer):  # type: ignore[type-arg]
    """How many."""

    count = serializers.IntegerField()


class Poked(serializers.Serializer):  # type: ignore[type-arg]
    """The widget."""

    poked = serializers.CharField()


class Queued(serializers.Serializer):  # type: ignore[type-arg]
    """A queued key."""

    kind = serializers.CharField()
    key = serializers.CharField()
    shard = serializers.IntegerField()
    generation = serializers.IntegerField()
    notBefore = serializers.DateTimeField(source="not_before")
    enqueuedAt = serializers.DateTimeField(source="enqueued_at")
    attempts = serializers.IntegerField()
    lastError = serializers.CharField(source="last_error", allow_null=True)
    lastErrorAt = serializers.DateTimeField(source="last_error_at", allow_null=True)


class QueuedPage(serializers.Serializer):  # type: ignore[type-arg]
    """A page of queued keys."""

    items = Queued(many=True)
    nextCursor = serializers.CharField(source="next_cursor", allow_null=True)


class View(APIView):
    """What the three views share."""

    authentication_classes = ()
    permission_classes = ()
    throttle_classes = ()
    parser_classes = (JSONParser,)
    renderer_classes = (JSONRenderer,)
    input_serializer: type[serializers.Serializer[Any]]
    output_serializer: type[serializers.Serializer[Any]]
    permission: str
    kind: Any = "query"

    def get(self, request: Request) -> Response:
        """Answer a query."""
        return self.serve(request, request.query_params)

    def serve(self, request: Request, data: Any) -> Response:
        """Validate, do the work in one transaction, render."""
        input = self.input_serializer(data=data)
        input.is_valid(raise_exception=True)
        wanted = input.validated_data
        secret = request.headers["Authorization"].removeprefix("Bearer ")
        try:
            with same_work.opened(secret, self.kind, wanted.get("tenant_id")) as call:
                same_work.permitted(call, self.permission)
                answer = self.output_serializer(self.work(call, wanted)).data
        except same_work.Refused:
            return Response(status=status.HTTP_403_FORBIDDEN)
        headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Request-Id": call.request_id}
        return Response(answer, headers=headers)

    def work(self, call: same_work.Open, wanted: Any) -> Any:
        """What the method does."""
        raise NotImplementedError


class Count(View):
    """The query."""

    input_serializer, output_serializer, permission = CountInput, Counted, "compute.acme:read"

    def work(self, call: same_work.Open, wanted: Any) -> Any:
        return {"count": same_work.count(wanted["tenant_id"])}


class Poke(View):
    """The mutation."""

    input_serializer, output_serializer, permission = PokeInput, Poked, "compute.acme:poke"
    kind = "mutation"
    http_method_names = ("post",)

    def post(self, request: Request) -> Response:
        """Answer a mutation."""
        return self.serve(request, request.data)

    def work(self, call: same_work.Open, wanted: Any) -> Any:
        same_work.poke(call, wanted["tenant_id"], wanted["widget_id"])
        return {"poked": wanted["widget_id"]}


class List(View):
    """The page."""

    input_serializer, output_serializer, permission = ListInput, QueuedPage, "compute.work:read"

    def work(self, call: same_work.Open, wanted: Any) -> Any:
        return {"items": same_work.page(wanted["kind"], wanted["limit"]), "next_cursor": None}
