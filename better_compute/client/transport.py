"""Sends calls with httpx, blocking or not, and makes them again while that can help."""

from __future__ import annotations

import asyncio
import time
from types import TracebackType
from typing import Any, Final, Self

import httpx

from better_compute.client import attempts
from better_compute.client.errors import ApiError, ConnectionLost
from better_compute.client.options import Options

#: Attempts after the first, and seconds that each may take.
RETRIES: Final = 4
TIMEOUT_S: Final = 30.0
_DEFAULT: Final = Options()


def _settings(base_url: str, token: str, timeout_s: float) -> dict[str, Any]:
    # Redirects would carry the token to wherever a proxy points.
    return {
        "base_url": base_url.rstrip("/") + "/api/compute/",
        "headers": {"Authorization": f"Bearer {token}", "User-Agent": "better-compute-python"},
        "timeout": timeout_s,
        "follow_redirects": False,
    }


class Transport:
    """Calls methods of one installation; safe to share between threads.

    Parameters
    ----------
    base_url
        Where the installation is served, without ``/api/compute``.
    token
        A bearer token.
    retries
        Attempts after the first, on lost connections, 429, 502, 503, 504 and a busy Idempotency-Key.
    """

    def __init__(self, base_url: str, token: str, *, retries: int = RETRIES, timeout_s: float = TIMEOUT_S) -> None:
        self._http = httpx.Client(**_settings(base_url, token, timeout_s))
        self._retries = retries

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
        """
        call = attempts.Call.of(method, input, options, mutation=mutation)
        counted = attempts.Attempts(self._retries)
        timeout = httpx.USE_CLIENT_DEFAULT if options.timeout_s is None else options.timeout_s
        while True:
            refused: ApiError | None = None
            lost: httpx.TransportError | None = None
            try:
                response = self._http.post(call.path, content=call.body, headers=dict(call.headers), timeout=timeout)
                return attempts.read(response.status_code, response.headers, response.content, answer)
            except httpx.TransportError as error:
                lost = error
            except ApiError as error:
                refused = error
            wait = counted.wait_s(refused)
            if wait is None:
                raise refused or ConnectionLost(f"{method}: {lost}") from lost
            time.sleep(wait)

    def document(self) -> Any:
        """The OpenAPI document of what is hosted."""
        response = self._http.get("openapi.json")
        return attempts.read(response.status_code, response.headers, response.content, Any)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()


class AsyncTransport:
    """As :class:`Transport`, for ``asyncio``."""

    def __init__(self, base_url: str, token: str, *, retries: int = RETRIES, timeout_s: float = TIMEOUT_S) -> None:
        self._http = httpx.AsyncClient(**_settings(base_url, token, timeout_s))
        self._retries = retries

    async def call(
        self, method: str, input: Any = None, answer: Any = Any, *, mutation: bool = True, options: Options = _DEFAULT
    ) -> Any:
        """See :meth:`Transport.call`."""
        call = attempts.Call.of(method, input, options, mutation=mutation)
        counted = attempts.Attempts(self._retries)
        timeout = httpx.USE_CLIENT_DEFAULT if options.timeout_s is None else options.timeout_s
        while True:
            refused: ApiError | None = None
            lost: httpx.TransportError | None = None
            try:
                response = await self._http.post(
                    call.path, content=call.body, headers=dict(call.headers), timeout=timeout
                )
                return attempts.read(response.status_code, response.headers, response.content, answer)
            except httpx.TransportError as error:
                lost = error
            except ApiError as error:
                refused = error
            wait = counted.wait_s(refused)
            if wait is None:
                raise refused or ConnectionLost(f"{method}: {lost}") from lost
            await asyncio.sleep(wait)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self.close()
