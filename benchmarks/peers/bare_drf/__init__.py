"""A Django REST framework view with msgspec, written by hand for the same work as our method.

It looks the token up with the statement our envelope uses, in one transaction, and writes the same rows: the
widget, the event, the audit record with its hash, the work item. It has no registry, no problem documents, no
limits, no savepoint rules and no catalog: what is left between it and us is the envelope.
"""

from __future__ import annotations

import hashlib
import secrets
import uuid
from datetime import datetime
from typing import Any

import msgspec
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.http import HttpResponse
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from better_compute.engine.shards import UNSHARDED
from better_compute.store import audit, outbox, work
from example_project.acme_widgets.api import Counted, CountInput, Poked, PokeInput
from example_project.acme_widgets.models import Widget

CONFIGURATION = (
    "djangorestframework APIView + msgspec, no serializers, fixed negotiation; authentication in the view's "
    "transaction by the same statement, has_perm of the same superuser; persistent connection, no middleware"
)

USER = [field.attname for field in User._meta.concrete_fields]
OPEN = f"""
SELECT set_config('statement_timeout', %s, true), set_config('transaction_read_only', %s, true), compute_now(),
  token.id, token.tenant_id, token.last_used_at, token.user_id,
  token.revoked_at IS NULL AND (token.expires_at IS NULL OR token.expires_at > compute_now()),
  {", ".join(f'owner."{column}"' for column in USER)}
FROM (VALUES (1)) AS one_row
LEFT JOIN compute_tokens AS token ON token.digest = %s
LEFT JOIN auth_user AS owner ON owner.id = token.user_id
"""
canonical = msgspec.json.Encoder(order="deterministic")
poke_input = msgspec.json.Decoder(PokeInput)
count_input = msgspec.json.Decoder(CountInput)


class JsonOnly(BaseContentNegotiation):
    """No negotiation, as our shell has none."""

    def select_parser(self, request: Any, parsers: Any) -> Any:
        return parsers[0]

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> Any:
        return renderers[0], "application/json"


class Raw(BaseParser):
    """The body as bytes; the view decodes it."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> bytes:
        return stream.read()


class BareView(APIView):
    """What both views share."""

    authentication_classes = ()
    permission_classes = ()
    throttle_classes = ()
    parser_classes = (Raw,)
    renderer_classes = (BaseRenderer,)
    content_negotiation_class = JsonOnly

    def open(self, cursor: Any, request: Request, *, read_only: bool) -> tuple[datetime, Any, User]:
        """Begin the call: limits, time, token and user in one statement."""
        digest = hashlib.sha256(request.headers["Authorization"].removeprefix("Bearer ").encode()).digest()
        cursor.execute(OPEN, ["15000", "on" if read_only else "off", digest])
        _, _, at, token_id, _, _, _, live, *row = cursor.fetchone()
        user = User.from_db("default", USER, row)
        if not live or not user.is_active:
            raise AuthenticationFailed
        return at, token_id, user

    def answer(self, value: Any) -> HttpResponse:
        """The value as JSON."""
        return HttpResponse(msgspec.json.encode(value), content_type="application/json")


class Count(BareView):
    """The query."""

    def post(self, request: Request) -> HttpResponse:
        with transaction.atomic(durable=True), connection.cursor() as cursor:
            _, _, user = self.open(cursor, request, read_only=True)
            wanted = count_input.decode(request.data)
            if not user.has_perm("compute.acme:read"):
                raise PermissionDenied
            return self.answer(Counted(count=Widget.objects.filter(tenant_id=wanted.tenant_id).count()))


class Poke(BareView):
    """The mutation."""

    def post(self, request: Request) -> HttpResponse:
        with transaction.atomic(durable=True), connection.cursor() as cursor:
            at, token_id, user = self.open(cursor, request, read_only=False)
            wanted = poke_input.decode(request.data)
            if not user.has_perm("compute.acme:poke"):
                raise PermissionDenied
            Widget.objects.create(id=wanted.widget_id, tenant_id=wanted.tenant_id)
            event = msgspec.json.encode({"widgetId": wanted.widget_id}).decode()
            subject = f"widget/{wanted.widget_id}"
            request_id = uuid.uuid4().hex
            cursor.execute(outbox.INSERT, ["acme.widget-poked", wanted.tenant_id, subject, event, None, request_id])
            self.audit(cursor, at, token_id, wanted, request_id)
            cursor.execute(work.UPSERT, [["acme.widgets"], [wanted.tenant_id], [UNSHARDED], [0]])
            return self.answer(Poked(poked=wanted.widget_id))

    def audit(self, cursor: Any, at: datetime, token_id: Any, wanted: PokeInput, request_id: str) -> None:
        """Write the same record as our envelope, hash included."""
        record_id, salt = uuid.uuid4(), secrets.token_bytes(16)
        principal = f"token/{token_id}"
        facts = {
            "form": 1,
            "id": str(record_id),
            "at": at.isoformat(timespec="microseconds"),
            "tenantId": wanted.tenant_id,
            "principal": principal,
            "method": "plugins.acme.widgets.poke",
            "action": "compute:acme:poke",
            "resourceType": "tenant",
            "resourceId": wanted.tenant_id,
            "outcome": "allowed",
            "code": None,
            "requestId": request_id,
        }
        text = canonical.encode(facts)
        leaf = hashlib.sha256(b"\x00" + salt + text).digest()
        columns = [wanted.tenant_id, principal, facts["method"], facts["action"], "tenant", wanted.tenant_id, "allowed"]
        cursor.execute(audit.INSERT, [record_id, at, *columns, None, request_id, text, salt, leaf])
