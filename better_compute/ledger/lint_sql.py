"""The same advice for SQL that a migration states itself: read statement by statement, by what its words say.

No parser of PostgreSQL's grammar: words in an unusual order are missed, and ``--ignore`` is for what is told wrongly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

_FLAGS: Final = re.IGNORECASE | re.DOTALL
_NAME: Final = r'(?P<table>(?:"[^"]+"|\w+)(?:\.(?:"[^"]+"|\w+))?)'
# What stands in a body or a string is no statement of the migration's own.
_NOISE: Final = re.compile(r"--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$|'(?:[^']|'')*'", _FLAGS)
_NOW: Final = re.compile(r"\b(now\s*\(\s*\)|current_timestamp|transaction_timestamp\s*\(\s*\))", _FLAGS)
_CREATE: Final = re.compile(rf"\s*CREATE\s+(?:UNLOGGED\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?{_NAME}", _FLAGS)
_REFERENCE: Final = re.compile(rf"\bREFERENCES\s+{_NAME}", _FLAGS)
_INDEX: Final = re.compile(
    rf"\s*CREATE\s+(?:UNIQUE\s+)?INDEX\s+(?!CONCURRENTLY\b).*?\bON\s+(?:ONLY\s+)?{_NAME}", _FLAGS
)
_ALTER: Final = re.compile(rf"\s*ALTER\s+TABLE\s+(?:IF\s+EXISTS\s+)?(?:ONLY\s+)?{_NAME}\s+(?P<what>.*)", _FLAGS)
_DROP: Final = re.compile(rf"\s*DROP\s+TABLE\s+(?:IF\s+EXISTS\s+)?{_NAME}", _FLAGS)
_LOCK: Final = re.compile(r"\s*LOCK\s+(?:TABLE\s+)?\w", _FLAGS)
_ADD_COLUMN: Final = re.compile(
    r"ADD\s+(?:COLUMN\s+)?(?:IF\s+NOT\s+EXISTS\s+)?(?!CONSTRAINT\b)(\"[^\"]+\"|\w+)", _FLAGS
)
_BRACKETS: Final = re.compile(r"\([^()]*\)")


@dataclass(frozen=True, slots=True)
class Found:
    """One thing to mend: the rule's code, what it is about, and the mend."""

    code: str
    what: str
    mend: str


def text_of(sql: Any) -> str:
    """One text of what RunSQL takes: a string, or a list of statements with or without parameters."""
    if isinstance(sql, str):
        return sql
    return ";".join(each if isinstance(each, str) else str(each[0]) for each in sql)


def check(text: str, *, prefix: str, is_core: re.Pattern[str] | None, created: set[str]) -> Iterator[Found]:
    """Advice on the statements in ``text``.

    Parameters
    ----------
    prefix
        What the names of the plugin's tables begin with; empty when it has none.
    is_core
        Matches the names of the core's tables, which a plugin must not refer to; None for a module.
    created
        Tables that the migration has made so far, which no old code knows and which are empty; added to.
    """
    for statement in _statements(text):
        if found := _NOW.search(statement):
            yield Found("NOW_DEFAULT", f"SQL with {found[0]}", "Use compute_now().")
        for reference in _REFERENCE.finditer(statement) if is_core else ():
            if is_core and is_core.fullmatch(_bare(reference["table"])):
                yield Found("CORE_FOREIGN_KEY", f"SQL references {reference['table']}", "Store the id instead.")
        if _LOCK.match(statement):
            yield Found("BIG_LOCK", "SQL with LOCK TABLE", "Let the statements take the locks that they need.")
        elif made := _CREATE.match(statement):
            table = _bare(made["table"])
            created.add(table)
            if not table.startswith(prefix):
                yield Found("TABLE_PREFIX", f"table {table!r}", f"Begin its name with {prefix!r}.")
        elif index := _INDEX.match(statement):
            if _bare(index["table"]) not in created:
                yield Found(
                    "BIG_LOCK",
                    f"CREATE INDEX on {index['table']}",
                    "Use CREATE INDEX CONCURRENTLY, or AddIndexConcurrently, in a non-atomic migration of its own.",
                )
        elif dropped := _DROP.match(statement):
            yield Found("BREAKS_OLD_CODE", f"DROP TABLE {dropped['table']}", _LATER)
        elif (altered := _ALTER.match(statement)) and _bare(altered["table"]) not in created:
            yield from _altered(altered["table"], altered["what"])


_LATER: Final = "Do it one release after the last code that uses it."


def _altered(table: str, what: str) -> Iterator[Found]:
    for action in _actions(what):
        words = " ".join(action.upper().split())
        shown = f"ALTER TABLE {table} {' '.join(action.split())[:40]}"
        if words.startswith(("DROP COLUMN", "RENAME")):
            yield Found("BREAKS_OLD_CODE", shown, _LATER)
        elif words.startswith("ADD CONSTRAINT"):
            if "NOT VALID" not in words and "USING INDEX" not in words:
                yield Found("BIG_LOCK", shown, "Add it NOT VALID first and validate it in the next migration.")
        elif re.match(r'ALTER (COLUMN )?("[^"]+"|\w+) (SET DATA )?TYPE\b', words):
            yield Found("BIG_LOCK", shown, "Add a column of the new type and fill it in steps.")
        elif re.match(r'ALTER (COLUMN )?("[^"]+"|\w+) SET NOT NULL', words):
            yield Found("BIG_LOCK", shown, "Add CHECK (... IS NOT NULL) NOT VALID and validate it before.")
        elif (
            (column := _ADD_COLUMN.match(action))
            and "NOT NULL" in words
            and not re.search(r"\b(DEFAULT|GENERATED)\b", words)
        ):
            yield Found(
                "NOT_NULL",
                f"new column {column[1]} of {table} is NOT NULL without a default",
                "Give it a default, or let it be null until the next release.",
            )


def _actions(what: str) -> list[str]:
    """The actions of one ALTER TABLE; what stands in brackets, e.g. a type's length, holds no comma that counts."""
    while (flat := _BRACKETS.sub(" ", what)) != what:
        what = flat
    return [action.strip() for action in what.split(",")]


def _statements(text: str) -> list[str]:
    return [statement for statement in _NOISE.sub(" ", text).split(";") if statement.strip()]


def _bare(name: str) -> str:
    return name.rpartition(".")[2].strip('"')
