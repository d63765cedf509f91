"""Kinds of commands that modules send to agents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

Lane = Literal["control", "work", "bulk"]
AgentRole = Literal["node", "site"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandKind:
    """A kind of command that a module sends to agents; ``ctx.commands.enqueue`` refuses any other.

    Parameters
    ----------
    kind
        Dotted name, unique over all modules, e.g. ``daemon.upgrade``.
    lane
        Commands of one lane run in order; ``control`` is never blocked by a long job.
    retry_safe
        Whether the agent may run it again after a crash in the middle.
    self_terminating
        Whether running it ends the agent itself, so that silence is no failure.
    timeout
        How long it may run, e.g. ``"15m"``.
    roles
        Which agents it may be sent to.
    payload
        A protobuf message class.
    """

    kind: str
    lane: Lane
    payload: Any
    timeout: str | timedelta
    retry_safe: bool = False
    self_terminating: bool = False
    roles: Sequence[AgentRole] = ("node",)
