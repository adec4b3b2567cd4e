"""Live check of a config, `umg check --live`: calls each provider and guard once."""

import logging

import structlog
import uvloop

from umg_grpc.cli.text_tables import print_table
from umg_grpc.config import Config
from umg_grpc.process.live_channel_check import call_channels
from umg_grpc.service.single_channel_check import CheckResult

CHECK_SECONDS = 20.0


def run(config: Config) -> int:
    """Call each channel once, and print a table. Return the exit code. The log is off: the table contains it."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    return uvloop.run(check_live(config))


async def check_live(config: Config) -> int:
    """Call each channel once, and print a table of the results. Return the exit code: 0 if all succeeded, else 1."""
    results = await call_channels(config, CHECK_SECONDS)
    print_table(("channel", "result", ""), map(_row, results))
    return int(not all(result.is_fine for result in results))


def _row(result: CheckResult) -> tuple[str, str, str]:
    return result.channel, "fine" if result.is_fine else "FAILED", result.text
