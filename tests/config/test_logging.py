"""What a log may hold."""

from __future__ import annotations

import io
import logging

import structlog


def test_a_traceback_in_the_log_shows_nobodys_words():
    """Local variables hold messages and secrets; frames and lines are enough to find a fault."""
    root = logging.getLogger()
    handler = next(
        one for one in root.handlers if isinstance(one.formatter, structlog.stdlib.ProcessorFormatter)
    )
    stream = io.StringIO()
    own = logging.StreamHandler(stream)
    own.setFormatter(handler.formatter)
    own_log = logging.getLogger("test.logging")
    own_log.propagate = False
    own_log.addHandler(own)
    try:
        said = "my diary says: " + "quiet words"
        try:
            len(said) / 0
        except ZeroDivisionError as error:
            own_log.exception("broken")
            structlog.get_logger("test.logging").warning("broken", exc_info=error)
    finally:
        own_log.removeHandler(own)
    assert stream.getvalue().count("ZeroDivisionError") == 2
    assert "quiet words" not in stream.getvalue()
