"""The patterns every name must match, whole and in ASCII."""

from __future__ import annotations

import hashlib
import keyword
import re
from typing import Final

_FLAGS = re.ASCII

#: A module's name, and the owner of its migrations.
MODULE_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,63}", _FLAGS)
#: ``<owner>/<nnnn>_<slug>``.
MIGRATION_NAME: Final = re.compile(r"([a-z][a-z0-9-]{0,63})/(\d{4})_[a-z0-9][a-z0-9_-]{0,95}", _FLAGS)
#: A group or a method, in Python and on the wire.
ROUTE_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}", _FLAGS)
#: ``compute:<area>:<verb>``.
ACTION: Final = re.compile(r"compute:([a-z][a-z0-9-]{0,63}):([a-z][a-z0-9-]{0,63})", _FLAGS)
#: A reconciler, which is also its work kind.
RECONCILER_NAME: Final = re.compile(r"[a-z][a-z0-9._-]{0,63}", _FLAGS)
#: A command kind sent to agents, e.g. ``daemon.upgrade``.
COMMAND_KIND: Final = re.compile(r"[a-z][a-z0-9-]{0,31}(\.[a-z][a-z0-9-]{0,31}){1,3}", _FLAGS)
#: A resource type of the catalog.
RESOURCE_TYPE: Final = re.compile(r"[a-z][a-z0-9-]{0,63}", _FLAGS)
#: An event type, e.g. ``acme.widget-poked``.
EVENT_TYPE: Final = re.compile(r"[a-z][a-z0-9-]{0,63}(\.[a-z][a-z0-9-]{0,63}){1,3}", _FLAGS)
#: A tenant. Usable in ``msgspec.Meta(pattern=...)``; valid ECMA 262 too, and refuses a trailing newline.
TENANT_ID_PATTERN: Final = r"^[A-Za-z0-9._:-]{1,128}$(?!\n)"
TENANT_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}", _FLAGS)
#: The id and version of an extension or a profile.
EXTENSION_ID: Final = re.compile(r"[a-z][a-z0-9._-]{0,63}", _FLAGS)
EXTENSION_VERSION: Final = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6}){0,3}", _FLAGS)
#: An operator's command, run as ``manage.py compute <module>:<command>``.
CLI_COMMAND: Final = re.compile(r"[a-z][a-z0-9-]{0,63}", _FLAGS)

#: Names a typed proxy client could not carry; they apply to the Python and the wire form.
RESERVED_ROUTE_NAMES: Final = frozenset(
    {"then", "catch", "finally", "toJSON", "constructor", "prototype", "__proto__", "plugins"}
)
#: A plugin's id is an attribute of clients too, where a name of Python's own would not do either.
RESERVED_PLUGIN_IDS: Final = RESERVED_ROUTE_NAMES | frozenset(keyword.kwlist)
#: Reconciler names the runtime keeps for itself.
RESERVED_RECONCILERS: Final = frozenset({"command-sweeper", "outbox-dispatch", "event-subscribers"})
#: Longest reconciler key, in Unicode code points.
MAX_KEY_LENGTH: Final = 512
#: Longest codename of a permission that Django stores.
MAX_CODENAME: Final = 100


def matches(pattern: re.Pattern[str], value: object) -> bool:
    """Tell whether ``value`` is a string that ``pattern`` matches from its first to its last character."""
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def camel_case(name: str) -> str:
    """Return the wire form of a Python name: ``self_check`` is ``selfCheck``."""
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


def codename(action: str) -> str:
    """The permission of an action: ``compute:acme:poke`` is ``acme:poke``; a long one ends in its hash."""
    name = action.removeprefix("compute:")
    if len(name) <= MAX_CODENAME:
        return name
    mark = hashlib.sha256(name.encode()).hexdigest()[:16]
    return f"{name[: MAX_CODENAME - len(mark) - 1]}.{mark}"


def key_problem(key: object) -> str | None:
    """Say why ``key`` cannot be a reconciler key, or return None.

    A key is 1 to 512 code points of any script; NUL and lone surrogates cannot be stored.
    """
    if not isinstance(key, str):
        return f"is {type(key).__name__}, not str"
    if not key:
        return "is empty"
    if len(key) > MAX_KEY_LENGTH:
        return f"has {len(key)} characters, more than {MAX_KEY_LENGTH}"
    if "\x00" in key:
        return "holds a NUL character"
    if any("\ud800" <= character <= "\udfff" for character in key):
        return "holds a lone surrogate"
    return None
