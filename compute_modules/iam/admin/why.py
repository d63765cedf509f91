"""Why can this principal do this? ``iam.explain`` drawn as the way from the root, with what was granted on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django import forms

from .page import cut

#: What a reason of a decision says.
REASONS: Final = {
    "GRANTED": "A permit covers it and nothing forbids it.",
    "FORBIDDEN": "A forbid covers it, and a forbid beats every permit.",
    "CEILING": "A tenant on the way has a ceiling that leaves the action out.",
    "PERMISSION_MISSING": "Something is granted to it there, but no permit covers this action.",
    "NOTHING_GRANTED": "Nothing is granted to it there, so the tenant reads to it as if it were not there.",
    "PRINCIPAL_DISABLED": "The principal is disabled.",
    "TENANT_UNKNOWN": "The tenant has no place in the tree.",
}


class WhyForm(forms.Form):
    """A question."""

    tenant = forms.CharField(max_length=128, help_text="In which tenant.")
    principal = forms.CharField(
        max_length=255, help_text="Who: user/<pk>, service/<name> or external/<provider>/<subject>."
    )
    action = forms.CharField(max_length=140, help_text="What: compute:<area>:<verb>.")

    def ask(self) -> dict[str, Any]:
        """The input of iam.explain."""
        wanted = self.cleaned_data
        return {"tenantId": wanted["tenant"], "principal": wanted["principal"], "action": wanted["action"]}


@dataclass(frozen=True, slots=True)
class Given:
    """A grant on the way: what it conveys, and why it counts or not."""

    id: str
    effect: str
    what: str
    counts: bool
    why: str
    decides: bool


@dataclass(frozen=True, slots=True)
class Rung:
    """A tenant on the way from the root."""

    tenant: str
    given: list[Given]
    #: Its ceiling is what decided.
    decides: bool


@dataclass(frozen=True, slots=True)
class Picture:
    """The whole answer."""

    allowed: bool
    reason: str
    says: str
    question: str
    rungs: list[Rung]

    @property
    def granted(self) -> bool:
        """Whether anything at all was granted on the way."""
        return any(rung.given for rung in self.rungs)


def picture(answer: Any, asked: dict[str, str]) -> Picture:
    """Draw the answer of iam.explain."""
    return Picture(
        allowed=answer.allowed,
        reason=answer.reason,
        says=REASONS.get(answer.reason, ""),
        question=f"{asked['action']} in {asked['tenant']} by {asked['principal']}",
        rungs=[
            Rung(
                place,
                [_given(step, answer.decided_by) for step in answer.considered if step.tenant_id == place],
                decides=answer.reason == "CEILING" and answer.decided_by == place,
            )
            for place in answer.path
        ],
    )


def _given(step: Any, decided_by: str) -> Given:
    return Given(
        id=step.grant_id,
        effect=step.effect,
        what=cut(step.role or ", ".join(step.actions)) + (" and below" if step.inherit else ""),
        counts=step.counts,
        why=_why(step),
        decides=step.grant_id == decided_by,
    )


def _why(step: Any) -> str:
    if step.counts:
        return "It counts: it holds now, reaches the tenant and covers the action."
    missing = [
        text
        for holds, text in (
            (step.active, "it does not hold now"),
            (step.reaches, "it does not reach the tenants below"),
            (step.matches, "it does not cover the action"),
        )
        if not holds
    ]
    return f"It does not count: {' and '.join(missing)}."
