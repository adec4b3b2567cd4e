"""Live check of a config, `umg check --live`: calls each provider and guard once."""

import logging
from collections.abc import Iterable

import structlog
import uvloop

from umg_grpc.cli.text_tables import Column, Fit, Form, print_table
from umg_grpc.config import Config
from umg_grpc.process.live_channel_check import call_channels
from umg_grpc.service.single_channel_check import CheckResult

CHECK_SECONDS = 20.0
RESULT_COLUMNS = (Column("channel"), Column("result"), Column("response", fit=Fit.FOLDED))


def run(config: Config, form: Form) -> int:
    """Call each channel once, and print a table. Return the exit code. The log is off: the table contains it."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    return uvloop.run(check_live(config, form))


async def check_live(config: Config, form: Form = Form.TABLE) -> int:
    """Call each channel once, and print a table of the results. Return the exit code: 0 if all succeeded, else 1."""
    results = await call_channels(config, CHECK_SECONDS)
    print_results(results, form)
    return int(not all(result.is_fine for result in results))


def print_results(results: Iterable[CheckResult], form: Form) -> None:
    """Print the results of the calls in a form."""
    print_table(RESULT_COLUMNS, map(_row, results), form)


def _row(result: CheckResult) -> tuple[str, str, str]:
    return result.channel, "fine" if result.is_fine else "FAILED", result.text
