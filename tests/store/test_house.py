"""SQL of the core stands in ``store``: what reads or locks the database's rows is found in one room."""

from __future__ import annotations

import ast
from pathlib import Path

import better_compute

CORE = Path(better_compute.__file__).parent
#: Rooms that may say SQL: the store, what migrates, and what makes the database of a developer's embedded server.
SPEAKS_SQL = {"store", "migrations", "devtools"}


def statements_sent(source: str) -> list[int]:
    """The lines that hand a text, or a text with values in it, to a cursor's or a connection's ``execute``."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("execute", "executemany", "copy")
        and node.args
        and isinstance(node.args[0], ast.Constant | ast.JoinedStr | ast.BinOp)
    ]


def test_no_room_of_the_core_sends_sql_but_the_store() -> None:
    found = {
        f"{path.relative_to(CORE)}:{line}"
        for path in CORE.rglob("*.py")
        if path.relative_to(CORE).parts[0] not in SPEAKS_SQL
        for line in statements_sent(path.read_text())
    }
    assert found == set()


def test_a_statement_outside_is_seen() -> None:
    assert statements_sent("def f(cursor):\n    cursor.execute('SELECT 1')\n    cursor.execute(f'{x}')") == [2, 3]
