"""Iterators over pages while rows come and go: what is there all the while is shown once, in both clients."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from better_compute.client import AsyncTransport, Transport
from better_compute.store import transaction
from better_compute.store.work import WorkRow
from tests.clients.conftest import Running, node
from tests.clients.proxy import faulty
from tests.clients.test_python import run

pytestmark = pytest.mark.django_db(transaction=True)

#: There all the while.
STAYING = [f"k{number:02}" for number in range(20)]


def insert(*keys: str) -> None:
    with transaction.transaction():
        transaction.enqueue([WorkRow("acme.widgets", key, -1) for key in keys])


def delete(*keys: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM compute_work WHERE key = ANY(%s)", [list(keys)])


class Restless:
    """Before each page, inserts a key before, between and behind all others, and deletes one that came before."""

    def __init__(self) -> None:
        self._count = itertools.count()
        insert(*STAYING)

    def __call__(self, path: str, attempt: int) -> None:
        try:
            number = next(self._count)
            insert(f"a{number:02}", f"k{number * 2:02}-new", f"z{number:02}")
            if number:
                delete(f"a{number - 1:02}", f"z{number - 1:02}")
        finally:
            connection.close()


def judge(walked: list[str]) -> None:
    assert [key for key in walked if key in STAYING] == STAYING
    assert len(set(walked)) == len(walked)
    assert walked == sorted(walked)
    # It really was restless: keys came up that were not there at first.
    assert any("new" in key for key in walked)


def test_the_python_iterator_shows_what_stays_once(running: Running, generated: Any) -> None:
    restless = Restless()
    with faulty(running.url, restless) as proxy, Transport(proxy.url, running.token) as transport:
        judge([queued.key for queued in generated.Client(transport).work.list_all(limit=3)])


def test_the_iterator_under_asyncio_shows_what_stays_once(running: Running, generated: Any) -> None:
    async def walk(url: str) -> list[str]:
        async with AsyncTransport(url, running.token) as transport:
            return [queued.key async for queued in generated.AsyncClient(transport).work.list_all(limit=3)]

    with faulty(running.url, Restless()) as proxy:
        judge(run(walk(proxy.url)))


@pytest.mark.slow
def test_the_typescript_iterator_shows_what_stays_once(running: Running, built: Path) -> None:
    with faulty(running.url, Restless()) as proxy:
        judge(node(built, "walk.mjs", proxy.url, running.token))
