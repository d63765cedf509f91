"""Arrays written in one go mean to PostgreSQL what they meant here."""

from __future__ import annotations

import pytest
from django.db import connection
from hypothesis import given, settings, strategies as st

from better_compute.store import arrays

pytestmark = pytest.mark.django_db

ANY_TEXT = st.lists(
    st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=20), max_size=6
)


@settings(max_examples=60, deadline=None)
@given(ANY_TEXT)
def test_texts_come_back_as_they_were(values: list[str]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::text[]", [arrays.texts(values)])
        assert cursor.fetchone() == (values,)


@pytest.mark.parametrize("values", [[], ["NULL"], ["{}"], ['"'], ["\\"], [","], [""], ["a\nb", 'c"\\d']])
def test_what_means_something_in_an_array_is_quoted(values: list[str]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::text[]", [arrays.texts(values)])
        assert cursor.fetchone() == (values,)


def test_integers_may_be_absent() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::bigint[]", [arrays.integers([1, None, -(2**63)])])
        assert cursor.fetchone() == ([1, None, -(2**63)],)
