"""``python -m example_project.demo``: the main job over real HTTP, and what the database shows of it.

``make demo ONCE=1`` runs it against an installation that ``manage.py compute_dev`` has started. Every step says
what it saw; the exit code is 0 when every step saw what it must.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psycopg
from psycopg.rows import dict_row

WAIT_SECONDS = 30.0
POLL_SECONDS = 0.05
EAST, WEST = "acme-east", "acme-west"
POKE = "plugins/acme/widgets/poke"
KIND = "acme.widgets"
#: Widgets of a tenant whose teardown is watched: several bounded steps.
MANY = 450

#: What one call may leave: the widget's row, its event, the tenant's work item. Each with its transaction.
TRACES = """
SELECT (SELECT xmin::text FROM plg_acme_widget WHERE id = %(widget)s) AS row,
       (SELECT xmin::text FROM compute_outbox WHERE subject = 'widget/' || %(widget)s) AS event,
       (SELECT xmin::text FROM compute_work WHERE kind = %(kind)s AND key = %(tenant)s) AS work,
       (SELECT generation FROM compute_work WHERE kind = %(kind)s AND key = %(tenant)s) AS generation
"""
#: A call that waits for the lock held by %(holder)s after it wrote its row and its event.
WAITING_CALL = """
SELECT a.pid FROM pg_stat_activity a
WHERE %(holder)s = ANY (pg_blocking_pids(a.pid))
  AND (SELECT count(DISTINCT l.relation) FROM pg_locks l
       WHERE l.pid = a.pid AND l.mode = 'RowExclusiveLock'
         AND l.relation IN ('plg_acme_widget'::regclass, 'compute_outbox'::regclass)) = 2
"""
HOLDER = """
SELECT w.id, w.pid, l.epoch FROM compute_leases l JOIN compute_workers w ON w.id = l.holder
WHERE l.name = 'singleton:' || %s AND w.expires_at > compute_now()
"""


class Unexpected(Exception):
    """A step saw something else than it must."""


def must(condition: object, saw: str) -> None:
    """End the step unless ``condition`` holds."""
    if not condition:
        raise Unexpected(saw)


@dataclass
class Installation:
    """The running installation, as a caller and as somebody who looks at its database sees it."""

    url: str
    login: dict[str, Any]
    owner: psycopg.Connection[dict[str, Any]]
    app_address: str
    http: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=WAIT_SECONDS))

    def call(self, method: str, body: dict[str, Any], token: str | None) -> httpx.Response:
        """Call a method over HTTP."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return self.http.post(f"{self.url}/api/compute/{method}", json=body, headers=headers)

    def poke(self, tenant: str, widget: str, token_of: str | None = None) -> httpx.Response:
        """Poke a widget of ``tenant``, by default with that tenant's token."""
        body = {"tenantId": tenant, "widgetId": widget}
        return self.call(POKE, body, self.login["tokens"][token_of or tenant])

    def one(self, sql: str, params: Any = None) -> dict[str, Any] | None:
        """The first row of a query."""
        return self.owner.execute(sql, params).fetchone()

    def traces(self, tenant: str, widget: str) -> dict[str, Any]:
        """What a call left behind."""
        return self.one(TRACES, {"tenant": tenant, "widget": widget, "kind": KIND}) or {}

    def count(self, table: str) -> int:
        """How many rows a table holds."""
        row = self.one(f"SELECT count(*) AS n FROM {table}")  # noqa: S608  (names of this file)
        return int(row["n"]) if row else 0


def eventually(look: Callable[[], Any], what: str) -> Any:
    """The first true value that ``look`` gives within the time."""
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(POLL_SECONDS)
    raise Unexpected(f"{what} was not to be seen within {WAIT_SECONDS:.0f} s")


@contextmanager
def frozen(here: Installation, pid: int) -> Iterator[None]:
    """Stop process ``pid`` in its tracks, outside of any transaction, so that what it would do next can be seen."""

    def freeze() -> bool:
        os.kill(pid, signal.SIGSTOP)
        busy = here.one(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() "
            "AND backend_xid IS NOT NULL AND pid <> pg_backend_pid()"
        )
        if busy:
            os.kill(pid, signal.SIGCONT)
        return busy is None

    try:
        eventually(freeze, "a moment without a writing transaction")
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def versions(here: Installation) -> str:
    """The API answers, and as which versions."""
    response = here.call("system/version", {}, here.login["installation_token"])
    must(response.status_code == 200, f"system/version answered {response.status_code} {response.text}")
    return " ".join(f"{name} {version}" for name, version in response.json().items())


def worker_holds_the_lease(here: Installation) -> str:
    """A worker process holds the reconciler's lease."""
    holder = eventually(lambda: here.one(HOLDER, [KIND]), f"a worker with the lease singleton:{KIND}")
    return f"worker {holder['id']}, process {holder['pid']}, epoch {holder['epoch']}"


def refusals(here: Installation) -> str:
    """Callers without a token or of another tenant are refused and leave nothing."""
    widget = f"w-{uuid4().hex[:12]}"
    anonymous = here.call(POKE, {"tenantId": EAST, "widgetId": widget}, None)
    foreign = here.poke(EAST, widget, token_of=WEST)
    malformed = here.poke(EAST, "Not A Widget")
    seen = [(r.status_code, r.json().get("code")) for r in (anonymous, foreign, malformed)]
    must(seen == [(401, "UNAUTHENTICATED"), (404, "NOT_FOUND"), (400, "INVALID_INPUT")], f"answers {seen}")
    left = here.traces(EAST, widget)
    must(left["row"] is None and left["event"] is None, f"they left {left}")
    return f"no token, other tenant, malformed id: {seen}; no row, no event"


def one_transaction(here: Installation) -> str:
    """The row, the event and the work item commit in one transaction; a second call only bumps the generation."""
    first, second = f"w-{uuid4().hex[:12]}", f"w-{uuid4().hex[:12]}"
    holder = here.one(HOLDER, [KIND])
    must(holder, "no worker holds the lease")
    assert holder is not None  # noqa: S101  (for the type checker)
    with frozen(here, holder["pid"]):
        answer = here.poke(EAST, first)
        must(answer.status_code == 200, f"poke answered {answer.status_code} {answer.text}")
        left = here.traces(EAST, first)
        must(left["row"] and left["row"] == left["event"] == left["work"], f"transactions {left}")
        must(here.poke(EAST, second).status_code == 200, "the second poke failed")
        again = here.traces(EAST, second)
        must(again["generation"] == left["generation"] + 1, f"generation {left} then {again}")
    return (
        f"{answer.json()}; row xmin {left['row']} = event xmin {left['event']} = work item xmin {left['work']}; "
        f"a second widget raised the item's generation from {left['generation']} to {again['generation']}"
    )


def run_elsewhere(here: Installation) -> str:
    """The reconciler ran in another process than the one that answered, and the key is finished."""
    gone = "SELECT 1 AS n FROM compute_work WHERE kind = %s AND key = %s"
    eventually(lambda: here.one(gone, [KIND, EAST]) is None, f"the end of {KIND} {EAST}")
    holder = here.one(HOLDER, [KIND])
    api = here.one("SELECT pid FROM compute_processes WHERE role = 'api' ORDER BY seen_at DESC LIMIT 1")
    must(holder and api, f"lease holder {holder}, API process {api}")
    assert holder is not None and api is not None  # noqa: S101, PT018  (for the type checker)
    must(holder["pid"] != api["pid"], f"both are process {api['pid']}")
    return (
        f"{KIND} {EAST} is done by process {holder['pid']} (worker {holder['id']}, lease epoch {holder['epoch']}); "
        f"the API is process {api['pid']}"
    )


def refused_twice(here: Installation) -> str:
    """A widget that exists cannot be poked again: the second call leaves no event and wakes nobody."""
    widget = f"w-{uuid4().hex[:12]}"
    must(here.poke(WEST, widget).status_code == 200, "the first poke failed")
    before = (here.count("plg_acme_widget"), here.count("compute_outbox"))
    answer = here.poke(WEST, widget)
    after = (here.count("plg_acme_widget"), here.count("compute_outbox"))
    must(answer.status_code >= 400, f"the second poke answered {answer.status_code}")
    must(before == after, f"rows and events {before} became {after}")
    return f"{answer.status_code} {answer.json().get('code')}; widgets and events stay {before[0]} and {before[1]}"


def cut_down(here: Installation) -> str:
    """A call whose last statement fails, after its row and its event were written, leaves none of the three."""
    widget = f"w-{uuid4().hex[:12]}"
    gone = "SELECT 1 AS n FROM compute_work WHERE kind = %s AND key = %s"
    eventually(lambda: here.one(gone, [KIND, WEST]) is None, f"the end of {KIND} {WEST}")
    answers: list[httpx.Response] = []
    caller = threading.Thread(target=lambda: answers.append(here.poke(WEST, widget)))
    with (
        psycopg.connect(here.app_address, autocommit=True, row_factory=dict_row) as operator,
        here.owner.transaction(),
    ):
        here.owner.execute("LOCK TABLE compute_work IN SHARE MODE")
        holder = here.owner.info.backend_pid
        caller.start()
        blocked = eventually(
            lambda: operator.execute(WAITING_CALL, {"holder": holder}).fetchone(),
            "a call that has written its row and its event",
        )
        operator.execute("SELECT pg_cancel_backend(%s)", [blocked["pid"]])
        caller.join(WAIT_SECONDS)
    must(answers, "the call did not end")
    left = here.traces(WEST, widget)
    must(answers[0].status_code == 503, f"it answered {answers[0].status_code} {answers[0].text}")
    must(left == {"row": None, "event": None, "work": None, "generation": None}, f"it left {left}")
    return (
        f"backend {blocked['pid']} had written row and event and was cancelled at the work item: "
        f"{answers[0].status_code} {answers[0].json()['code']}; left behind: no row, no event, no work item"
    )


def periodic_key(here: Installation) -> str:
    """The reconciler's periodic key stands in the queue and waits for its next turn."""
    look = (
        "SELECT key, every_ms, not_before, attempts, not_before > compute_now() AS waits FROM compute_work "
        "WHERE kind = %s AND every_ms IS NOT NULL"
    )
    row = eventually(
        lambda: (found := here.one(look, [KIND])) and found["waits"] and found, "a periodic key that has run"
    )
    return f"key {row['key']!r} every {row['every_ms'] // 60000} min, next at {row['not_before']:%H:%M:%S %Z}"


def doctor(here: Installation) -> str:
    """The doctor's report is ok, from the command and over HTTP."""
    manage = Path(__file__).resolve().parent.parent / "manage.py"
    command = subprocess.run(  # noqa: S603  (our own command)
        [sys.executable, str(manage), "doctor", "--format", "json"], capture_output=True, text=True, check=False
    )
    must(command.stdout, f"manage.py doctor ended with {command.returncode}: {command.stderr}")
    report = json.loads(command.stdout)
    served = here.call("system/selfCheck", {}, here.login["installation_token"])
    must(served.status_code == 200, f"system/selfCheck answered {served.status_code} {served.text}")
    for finding in report["findings"]:
        print(f"        {finding['severity']}: {finding['check']}: {finding['message']} {finding['fix']}")
    must(report["ok"] is True and command.returncode == 0, f"manage.py doctor: {report}")
    must(served.json()["ok"] is True, f"system.selfCheck: {served.text}")
    return f"ok, {len(report['findings'])} findings from the command, {len(served.json()['findings'])} over HTTP"


def torn_down(here: Installation) -> str:
    """Of two tenants one is deleted: its teardown is watched to the end, and the other keeps everything."""
    mark = uuid4().hex[:8]
    gone, stays = f"gone-{mark}", f"stays-{mark}"
    token = here.login["installation_token"]
    for tenant in (gone, stays):
        place = {"parentId": "root", "tenantId": tenant, "kind": "organisation", "name": tenant}
        made = here.call("tenantTree/create", place, token)
        must(made.status_code == 200, f"tenantTree/create answered {made.status_code} {made.text}")
        here.owner.execute(
            "INSERT INTO plg_acme_widget (id, tenant_id) SELECT %s || '-' || n, %s FROM generate_series(1, %s) AS n",
            [tenant, tenant, MANY],
        )
    answer = here.call("tenants/delete", {"tenantId": gone, "reason": "the demo is over"}, token)
    must(answer.status_code == 200, f"tenants/delete answered {answer.status_code} {answer.text}")
    late = here.call(POKE, {"tenantId": gone, "widgetId": f"late-{mark}"}, token)
    must(late.status_code == 409, f"a call on the dying tenant answered {late.status_code} {late.text}")
    seen: list[str] = []

    def ended() -> dict[str, Any] | None:
        status: dict[str, Any] = here.call("tenants/deletionStatus", {"tenantId": gone}, token).json()
        left = widgets_of(here, gone)
        waits = ", ".join(blocker["module"] for blocker in status["blockers"]) or "nobody"
        line = f"{status['phase']}, pass {status['passes']}, {left} widgets left, waits for {waits}"
        if line not in seen:
            seen.append(line)
        return status if status["phase"] == "torn_down" else None

    status = eventually(ended, f"the end of {gone}")
    told = here.one(
        "SELECT count(*) AS n FROM compute_outbox WHERE type = 'tenant.torn-down' AND tenant_id = %s", [gone]
    )
    must(told == {"n": 1}, f"tenant.torn-down was told {told} times")
    must((widgets_of(here, gone), widgets_of(here, stays)) == (0, MANY), "the wrong widgets are left")
    for line in [*seen[:4], *(["..."] if len(seen) > 5 else []), *seen[4:][-1:]]:
        print(f"        {line}")
    return (
        f"{gone} and its {MANY} widgets are gone after {status['passes']} passes, tenant.torn-down was told once; "
        f"a call meanwhile met 409 {late.json()['reason']}; {stays} keeps its {MANY}"
    )


def widgets_of(here: Installation, tenant: str) -> int:
    """How many widgets a tenant has."""
    row = here.one("SELECT count(*) AS n FROM plg_acme_widget WHERE tenant_id = %s", [tenant])
    return int(row["n"]) if row else 0


def logged_in(here: Installation) -> str:
    """People of an identity provider log in there and call here, as far as their groups and grants reach."""
    issuer = os.environ["COMPUTE_DEV_IDENTITY_URL"]
    mary, ben = login_at(issuer, "mary"), login_at(issuer, "ben")
    count = "plugins/acme/widgets/count"
    seen = [
        here.call(count, {"tenantId": tenant}, token).status_code for token in (mary, ben) for tenant in (EAST, WEST)
    ]
    must(seen == [200, 404, 404, 404], f"mary in {EAST} and {WEST}, then ben: {seen}")
    token = here.login["installation_token"]
    wanted = {"tenantId": WEST, "principal": "external/dev/ben", "role": "viewer"}
    given = here.call("grants/create", wanted, token)
    must(given.status_code == 200, f"grants/create answered {given.status_code} {given.text}")
    granted = here.call(count, {"tenantId": WEST}, ben).status_code
    here.call("grants/revoke", {"grantId": given.json()["id"]}, token)
    revoked = here.call(count, {"tenantId": WEST}, ben).status_code
    must((granted, revoked) == (200, 404), f"ben with a grant: {granted}, after it was revoked: {revoked}")
    header, payload, _ = mary.split(".")
    forged = here.call(count, {"tenantId": EAST}, f"{header}.{payload}.AAAA")
    must(forged.status_code == 401, f"a forged token answered {forged.status_code}")
    return (
        f"mary's group reads {EAST} and not {WEST}; ben reads neither, {WEST} with a grant, and at the request after "
        f"its revocation {revoked}; a forged signature {forged.status_code} {forged.json()['reason']}"
    )


def login_at(issuer: str, person: str) -> str:
    """The authorization code flow with PKCE, as a browser and its application walk it."""
    verifier = secrets.token_urlsafe(48)
    digest = hashlib.sha256(verifier.encode()).digest()
    back, state = "http://127.0.0.1/back", secrets.token_urlsafe(12)
    with httpx.Client(timeout=WAIT_SECONDS) as browser:
        found = browser.get(f"{issuer}/.well-known/openid-configuration").json()
        asked = {
            "client_id": "example",
            "response_type": "code",
            "redirect_uri": back,
            "state": state,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        form = {"username": person, "password": person}
        answer = browser.post(found["authorization_endpoint"], params=asked, data=form)
        must(answer.status_code == 303, f"the login answered {answer.status_code}")
        back_with = httpx.URL(answer.headers["Location"]).params
        must(back_with["state"] == state, "the answer is not to this login")
        redeem = {
            "grant_type": "authorization_code",
            "client_id": "example",
            "code": back_with["code"],
            "redirect_uri": back,
            "code_verifier": verifier,
        }
        token = browser.post(found["token_endpoint"], data=redeem)
        must(token.status_code == 200, f"the code was answered {token.status_code}")
        must(browser.post(found["token_endpoint"], data=redeem).status_code == 400, "a code can be redeemed twice")
    return str(token.json()["access_token"])


STEPS: tuple[Callable[[Installation], str], ...] = (
    versions,
    worker_holds_the_lease,
    refusals,
    one_transaction,
    run_elsewhere,
    refused_twice,
    cut_down,
    periodic_key,
    torn_down,
    logged_in,
    doctor,
)


def main() -> int:
    """Take every step; 0 when all saw what they must."""
    login = json.loads(Path(os.environ["COMPUTE_DEMO_LOGIN"]).read_text(encoding="utf-8"))
    app_address = os.environ["DATABASE_URL"]
    owner_address = os.environ.get("OWNER_DATABASE_URL", app_address)
    failures = 0
    with psycopg.connect(owner_address, autocommit=True, row_factory=dict_row) as owner:
        here = Installation(os.environ["COMPUTE_DEMO_URL"], login, owner, app_address)
        for step in STEPS:
            claim = (step.__doc__ or step.__name__).splitlines()[0]
            try:
                print(f"ok    {claim}\n        {step(here)}")
            except (Unexpected, httpx.HTTPError, psycopg.Error, KeyError) as failure:
                failures += 1
                print(f"FAIL  {claim}\n        {type(failure).__name__}: {failure}")
    print(f"{len(STEPS) - failures} of {len(STEPS)} steps saw what they must.")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
