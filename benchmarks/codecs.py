"""What a codec alone costs: a list's input read and checked, its page of answers checked and written."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from rest_framework.renderers import JSONRenderer

from benchmarks.bars import STATED
from benchmarks.harness import Contest, Figure
from benchmarks.peers import django_ninja, drf_serializers
from better_compute.api import ListWorkInput, QueuedKey
from better_compute.contract.pages import Page
from better_compute.envelope import codec
from better_compute.store.queued import Queued

#: Pages of one sample.
PAGES = 10
ROUNDS = 15


def figures(kind: str, rows: Sequence[Queued]) -> list[Figure]:
    """Microseconds of CPU for a page of ``rows``, and how they compare. Raises unless all write the same bytes."""
    asked = {"kind": [kind], "limit": [str(len(rows))]}
    flat = {name: each[0] for name, each in asked.items()}
    answer = {"items": rows, "next_cursor": None}

    def ours() -> bytes:
        codec.decode_query(ListWorkInput, asked)
        page = Page(items=[QueuedKey(**{name: getattr(row, name) for name in row.__slots__}) for row in rows])
        return codec.encode(page, Page[QueuedKey], "work.list")[0]

    def drf() -> bytes:
        drf_serializers.ListInput(data=flat).is_valid(raise_exception=True)
        return bytes(JSONRenderer().render(drf_serializers.QueuedPage(answer).data))

    def ninja() -> bytes:
        django_ninja.ListInput.model_validate(flat)
        shown = django_ninja.QueuedPage.model_validate(answer).model_dump(by_alias=True)
        return django_ninja.Compact().render(None, shown, response_status=200).encode()  # type: ignore[arg-type, no-any-return]

    assert ours() == drf() == ninja(), (ours(), drf(), ninja())
    sides = {"ours": ours, "DRF serializers": drf, "django-ninja": ninja}
    contest = Contest(
        f"codec of a page of {len(rows)}",
        "µs CPU/page",
        {name: _cost(once) for name, once in sides.items()},
        rounds=ROUNDS,
        configuration={
            "ours": "msgspec: query string to struct; structs to JSON, and the JSON checked against the declared type",
            "DRF serializers": "Serializer.is_valid; Serializer.data and JSONRenderer",
            "django-ninja": "pydantic model_validate; model_validate, model_dump and json.dumps",
        },
    )
    return [
        Figure("call: codec of a page beside DRF serializers", contest, "DRF serializers", STATED),
        Figure("call: codec of a page beside django-ninja", contest, "django-ninja", STATED),
    ]


def _cost(once: Callable[[], bytes]) -> Callable[[], float]:
    def measure() -> float:
        began = time.thread_time_ns()
        for _ in range(PAGES):
            once()
        return (time.thread_time_ns() - began) / 1_000 / PAGES

    return measure
