"""Sends calls with httpx, blocking or not, and makes them again while that can help."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self

import httpx

from better_compute.client import answers, attempts, deadlines
from better_compute.client.errors import ApiError
from better_compute.client.options import Options
from better_compute.client.watch import AsyncWatch, Watch
from better_compute.client.watching import Watching

#: Attempts after the first, and seconds that each may take, from its first byte out to its last byte in.
RETRIES: Final = 4
TIMEOUT_S: Final = 30.0
_DEFAULT: Final = Options()
#: Where an installation serves its methods, which its own pages tell as its address.
_ROUTES: Final = "/api/compute"
_WATCHING: Final = Watching()


def _settings(base_url: str, token: str, timeout_s: float) -> dict[str, Any]:
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL as error:
        raise ValueError(f"The address of an installation is not {base_url[:80]!r}: {error}.") from None
    if url.scheme not in ("http", "https") or not url.host or url.userinfo or url.query or url.fragment:
        shown = url.copy_with(username=None, password=None, query=None, fragment=None) if url.host else base_url[:80]
        raise ValueError(f"The address of an installation is not {str(shown)!r}; give https://host/path and no more.")
    if not token.isascii() or not token.isprintable() or not token or " " in token:
        raise ValueError("The token is none: it is empty, or has characters that no header carries.")
    # Redirects would carry the token to wherever a proxy points.
    return {
        "base_url": base_url.rstrip("/").removesuffix(_ROUTES) + f"{_ROUTES}/",
        "headers": {"Authorization": f"Bearer {token}", "User-Agent": "better-compute-python"},
        "timeout": timeout_s,
        "follow_redirects": False,
    }


class Transport:
    """Calls methods of one installation; safe to share between threads.

    Parameters
    ----------
    base_url
        Where the installation is served; ``/api/compute`` behind it counts for nothing.
    token
        A bearer token.
    retries
        Attempts after the first, on lost connections, 429, 502, 503, 504 and a busy Idempotency-Key.
    timeout_s
        Seconds that one attempt may take altogether.
    most_answer_bytes
        Largest answer that is read.
    """

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        retries: int = RETRIES,
        timeout_s: float = TIMEOUT_S,
        most_answer_bytes: int = answers.MOST_BYTES,
    ) -> None:
        self._http = httpx.Client(**_settings(base_url, token, timeout_s))
        deadlines.install(self._http)
        self._retries, self._timeout_s, self._most_bytes = retries, timeout_s, most_answer_bytes

    def call(
        self, method: str, input: Any = None, answer: Any = Any, *, mutation: bool = True, options: Options = _DEFAULT
    ) -> Any:
        """Call ``method`` by its dotted name and return its answer as the type ``answer``.

        Raises
        ------
        ApiError
            The type of the refusal's code.
        ConnectionLost
            No answer came.
        BadAnswer
            What came is no answer of the API.
        """
        made = attempts.Attempts.of(
            method, input, options, mutation=mutation, retries=self._retries, timeout_s=self._timeout_s
        )
        while True:
            try:
                return self._answer(
                    "POST", made.call.path, answer, made.timeout_s, content=made.call.body, headers=made.call.headers
                )
            except (ApiError, httpx.TransportError) as error:
                wait_s = made.wait_s(error)
            time.sleep(wait_s)

    def _answer(self, verb: str, path: str, answer: Any, timeout_s: float, **sent: Any) -> Any:
        with deadlines.within(timeout_s), self._http.stream(verb, path, timeout=timeout_s, **sent) as response:
            body = answers.Body(response.headers, self._most_bytes)
            for part in response.iter_raw():
                body.take(part)
        return answers.read(response.status_code, response.headers, body.whole(), answer)

    def watch(
        self,
        method: str,
        input: Any = None,
        answer: Any = Any,
        *,
        listed: bool = False,
        identify: Callable[[Any], str] | None = None,
        watching: Watching = _WATCHING,
        options: Options = _DEFAULT,
    ) -> Watch[Any]:
        """Watch a query: its answers as they change, or with ``listed`` the changes of a list's items."""
        return Watch(
            self, method, input or {}, answer, listed=listed, identify=identify, watching=watching, options=options
        )

    def document(self) -> Any:
        """The OpenAPI document of what is hosted."""
        try:
            return self._answer("GET", "openapi.json", Any, self._timeout_s, headers={"Accept-Encoding": "identity"})
        except httpx.TransportError as error:
            raise attempts.lost("openapi.json", error) from error

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()


class AsyncTransport:
    """As :class:`Transport`, for ``asyncio``."""

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        retries: int = RETRIES,
        timeout_s: float = TIMEOUT_S,
        most_answer_bytes: int = answers.MOST_BYTES,
    ) -> None:
        self._http = httpx.AsyncClient(**_settings(base_url, token, timeout_s))
        self._retries, self._timeout_s, self._most_bytes = retries, timeout_s, most_answer_bytes

    async def call(
        self, method: str, input: Any = None, answer: Any = Any, *, mutation: bool = True, options: Options = _DEFAULT
    ) -> Any:
        """See :meth:`Transport.call`. A cancelled task gives its connection up; its call may have its effect."""
        made = attempts.Attempts.of(
            method, input, options, mutation=mutation, retries=self._retries, timeout_s=self._timeout_s
        )
        while True:
            try:
                # Not httpx's own limit, which a server that drips bytes never reaches.
                async with asyncio.timeout(made.timeout_s):
                    return await self._answer(made.call, answer)
            except (ApiError, httpx.TransportError, TimeoutError) as error:
                wait_s = made.wait_s(error)
            await asyncio.sleep(wait_s)

    async def _answer(self, call: attempts.Call, answer: Any) -> Any:
        async with self._http.stream(
            "POST", call.path, content=call.body, headers=call.headers, timeout=None
        ) as response:
            body = answers.Body(response.headers, self._most_bytes)
            async for part in response.aiter_raw():
                body.take(part)
        return answers.read(response.status_code, response.headers, body.whole(), answer)

    def watch(
        self,
        method: str,
        input: Any = None,
        answer: Any = Any,
        *,
        listed: bool = False,
        identify: Callable[[Any], str] | None = None,
        watching: Watching = _WATCHING,
        options: Options = _DEFAULT,
    ) -> AsyncWatch[Any]:
        """See :meth:`Transport.watch`."""
        return AsyncWatch(
            self, method, input or {}, answer, listed=listed, identify=identify, watching=watching, options=options
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self.close()
