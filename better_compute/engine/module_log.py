"""The log of a module, whose stacks hold no secrets."""

from __future__ import annotations

import logging

from better_compute.store.failures import trace_failure


def module_log(module: str) -> logging.Logger:
    """Return ``ctx.log`` of a module.

    A stack that is logged with it, as by ``ctx.log.exception``, goes out as ``trace_failure`` tells it: what an
    exception itself says may hold a password or a value of a row.
    """
    log = logging.getLogger(f"better_compute.module.{module}")
    log.addFilter(_without_texts)  # a second time changes nothing
    return log


def _without_texts(record: logging.LogRecord) -> bool:
    # Formatters take the text that is there instead of writing one.
    if isinstance(record.exc_info, tuple) and record.exc_info[1] is not None:
        record.exc_text = trace_failure(record.exc_info[1])
        record.exc_info = None
    return True
