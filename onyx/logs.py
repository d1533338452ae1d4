"""Logs of processes: one line an event on standard error, as text or as JSON, with RFC 3339 times.

Modules speak to ``logging``; here it is said once how that looks.  What stands in ``extra`` of a
call is a field of its own: ``key=value`` behind the text, a key of the object in JSON.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any

from overlay.log_options import LEVELS, LogFormat, LogOptions
from overlay.plain_text import plain

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

USUAL_LOGS = LogOptions()
_usual: str = USUAL_LOGS.level  # of this process, to which SIGUSR1 comes back
_own: tuple[str, logging.Handler] | None = None  # of this process: its name, and who writes lines


def add_log_arguments(parser: argparse.ArgumentParser) -> None:
    """``--log-level`` and ``--log-format``; ``log_options`` are what they say."""
    formats = [each.value for each in LogFormat]
    level, format_ = (
        "what is logged (default: that of [log], or info)",
        "lines as text, or as JSON (likewise)",
    )
    parser.add_argument("--log-level", choices=LEVELS, help=level)
    parser.add_argument("--log-format", choices=formats, help=format_)


def log_options(arguments: argparse.Namespace, of_file: LogOptions = USUAL_LOGS) -> LogOptions:
    """Those of the file, where the command line does not say others."""
    level, format_ = arguments.log_level, arguments.log_format
    return LogOptions(level or of_file.level, LogFormat(format_ or of_file.format))


def configure_logging(
    process: str, options: LogOptions = USUAL_LOGS, stream: SupportsWrite[str] | None = None
) -> None:
    """From now on all of this process, whose name is said in each line."""
    global _own  # noqa: PLW0603  # as of ``set_level``
    handler = logging.StreamHandler(stream or sys.stderr)
    root = logging.getLogger()
    for other in root.handlers[:]:
        root.removeHandler(other)
        other.close()
    root.addHandler(handler)
    _own = process, handler
    use_logs(options)


def use_logs(options: LogOptions) -> None:
    """From now on, of a process that is configured; of another the level alone."""
    if _own is not None:
        process, handler = _own
        handler.setFormatter(_formatter(process, is_json=options.format is LogFormat.JSON))
    set_level(options.level)


def _formatter(process: str, *, is_json: bool) -> logging.Formatter:
    # A quarter of the time that a command takes to start, of which most never log.
    import structlog  # noqa: PLC0415

    def named(logger: object, name: str, event: MutableMapping[str, Any]) -> Any:
        event["process"] = process
        return event

    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.stdlib.ExtraAdder(),
            named,
        ],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer() if is_json else _as_text,
        ],
    )


def set_level(level: str) -> None:
    """One of LEVELS, from now on."""
    global _usual  # noqa: PLW0603  # as the logging that it is about is the whole process's
    _usual = level
    logging.getLogger().setLevel(level.upper())


def toggle_debug() -> str:
    """Between "debug" and the level that was set last; the one that is now."""
    root = logging.getLogger()
    level = _usual if root.level == logging.DEBUG else "debug"
    root.setLevel(level.upper())
    return level


def _as_text(logger: object, name: str, event: MutableMapping[str, Any]) -> str:
    """``2026-02-03T04:05:06.789012Z B1 info onyx.process: ready key=value``."""
    begin = " ".join(str(event.pop(key, "")) for key in ("time", "process", "level"))
    text, trace = event.pop("event"), event.pop("exception", "")
    said = f"{begin} {event.pop('logger', '')}: {text}"
    said += "".join(f" {key}={value}" for key, value in event.items())
    said = plain(said, "")  # an event is one line, whatever strangers are called
    return f"{said}\n{trace}" if trace else said
