"""A valid input for every hosted method, made from its type, and records of a tenant for the ids in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from better_compute import compute
from better_compute.contract.methods import MethodSpec
from tests.modules.iam.conftest import OPERATOR, service


@dataclass(frozen=True, slots=True)
class Belongings:
    """What one tenant has, by the name that inputs give it."""

    tenant: str
    parent: str
    child: str
    grant: str
    token: str
    role: str
    service: str

    @classmethod
    def make(cls, tenant: str, parent: str) -> Belongings:
        """Make a record of every kind in the tenant."""
        name = f"{tenant}-bot"
        service(name, home=tenant)
        ask = {"tenantId": tenant, "principal": f"service/{name}"}
        granted = compute.api.grants.create(OPERATOR, {**ask, "role": "viewer"})
        token = compute.api.tokens.create(OPERATOR, {**ask, "label": "t"})
        compute.api.roles.create(OPERATOR, {"tenantId": tenant, "name": "r", "permits": ["compute:acme:read"]})
        return cls(tenant, parent, f"{tenant}-new", granted.id, token.token.id, f"{tenant}/r", f"service/{name}")


#: Inputs by method, where the names of fields do not tell. ``{}`` in a text is filled from the belongings.
INPUTS: dict[str, dict[str, Any]] = {
    "system.selfCheck": {},
    "system.version": {},
    "system.modules": {},
    "work.requeue": {"kind": "tenancy", "key": "*"},
    "work.pause": {"kind": "tenancy", "reason": "why"},
    "work.resume": {"kind": "tenancy"},
    "tenants.list": {},
    "tenantTree.create": {"parentId": "{tenant}", "tenantId": "{child}", "kind": "project", "name": "n"},
    "tenantTree.setCeiling": {"parentId": "{parent}", "tenantId": "{tenant}", "ceiling": None},
    "grants.create": {
        "tenantId": "{tenant}",
        "principal": "{service}",
        "role": "{role}",
        "resource": {"type": "iam-grant", "id": "{grant}"},
    },
    "iam.check": {
        "tenantId": "{tenant}",
        "action": "compute:acme:read",
        "resource": {"type": "iam-grant", "id": "{grant}"},
    },
    "iam.explain": {
        "tenantId": "{tenant}",
        "action": "compute:acme:read",
        "resource": {"type": "iam-token", "id": "{token}"},
    },
    "iam.whoCan": {
        "tenantId": "{tenant}",
        "action": "compute:acme:read",
        "resource": {"type": "iam-service", "id": "{service}"},
    },
    "iam.batchCheck": {
        "tenantId": "{tenant}",
        "checks": [{"action": "compute:acme:read", "resource": {"type": "iam-role", "id": "{role}"}}],
    },
    "iam.listAllowed": {"tenantId": "{tenant}", "action": "compute:acme:read"},
    "roles.create": {"tenantId": "{tenant}", "name": "another", "permits": ["compute:acme:read"]},
    "roles.update": {"roleId": "{role}", "permits": ["compute:acme:read"]},
    "tokens.create": {
        "tenantId": "{tenant}",
        "label": "t",
        "principal": "{service}",
        "actsIn": "{tenant}",
    },
    "serviceAccounts.create": {"tenantId": "{tenant}", "name": "{tenant}-another", "label": "l"},
    "breakGlass.end": {"grantId": "{grant}"},
    "principals.disable": {"principal": "external/corp/{tenant}", "reason": "why"},
    "principals.enable": {"principal": "external/corp/{tenant}"},
    "principals.get": {"principal": "external/corp/{tenant}"},
}

#: Fields by name.
FIELDS: dict[str, Any] = {
    "tenantId": "{tenant}",
    "grantId": "{grant}",
    "tokenId": "{token}",
    "roleId": "{role}",
    "principal": "{service}",
    "widgetId": "w-1",
    "reason": "why",
}


def sample(spec: MethodSpec, belongings: Belongings) -> dict[str, Any]:
    """A valid input that names what ``belongings`` has. A method with a required field of another name fails here."""
    template = INPUTS.get(spec.dotted)
    if template is None:
        fields = {field.encode_name: field for field in _fields(spec.input_type)}
        missing = [name for name, field in fields.items() if field.required and name not in FIELDS]
        assert not missing, f"{spec.dotted} needs {missing}: add it to INPUTS or FIELDS in {__name__}"
        template = {name: FIELDS[name] for name, field in fields.items() if field.required}
    return dict(_filled(template, belongings))


def _fields(type: Any) -> Any:
    import msgspec

    return msgspec.structs.fields(type)


def _filled(value: Any, belongings: Belongings) -> Any:
    if isinstance(value, str):
        return value.format(**{name: getattr(belongings, name) for name in belongings.__slots__})
    if isinstance(value, dict):
        return {key: _filled(each, belongings) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, belongings) for each in value]
    return value
