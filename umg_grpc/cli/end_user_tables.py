"""Implementation of `umg usage --by end-user`: prints calls, tokens and cost by the people whose ids callers send."""

from collections.abc import Sequence

from umg_grpc.base.micro_credits import credits_text
from umg_grpc.cli.admin_client import pages
from umg_grpc.cli.admin_connection import opened
from umg_grpc.cli.common_flags import AdminTarget
from umg_grpc.cli.text_tables import Column, Form, print_objects, print_table
from umg_grpc.cli.usage_command_actions import PAGE_SIZE, Calls
from umg_grpc.service.servicers.timestamps import timestamp
from umg_grpc.v1 import pb

END_USER_DIMENSION = "end-user"
END_USER_COLUMNS = (
    Column("end user"),
    Column("requests", is_number=True),
    Column("failed", 3, is_number=True),
    Column("input", 2, is_number=True),
    Column("output", 2, is_number=True),
    Column("credits", is_number=True),
)
SUM_NAMES = ("requests", "failed", "input_tokens", "output_tokens", "micro_credits")


async def end_users(target: AdminTarget, calls: Calls, form: Form) -> None:
    """Print the usage of end users in the days of the selected calls, the highest cost first."""
    async with opened(target) as admin:
        request = pb.ListEndUserUsageRequest(
            start_time=timestamp(calls.since),
            end_time=timestamp(calls.until),
            key_ids=await calls.key_ids(admin),
            project_ids=calls.projects,
            tags=calls.tags,
            page_size=PAGE_SIZE,
        )
        found = pages(admin, request, pb.ListEndUserUsageResponse)
        entries = [entry async for page in found for entry in page.entries]
    print_end_users(entries, form)


def print_end_users(entries: Sequence[pb.EndUserUsage], form: Form) -> None:
    """Print the usage of end users in a form."""
    sums = [_sums(entry) for entry in entries]
    if not form.is_text:
        rows = ({"end_user": entry.end_user, **each} for entry, each in zip(entries, sums, strict=True))
        print_objects(rows, ("end_user", *SUM_NAMES), form)
        return
    cells = [[entry.end_user or "others", *_figures(each)] for entry, each in zip(entries, sums, strict=True)]
    if len(cells) > 1:
        cells.append(["total", *_figures({name: sum(each[name] for each in sums) for name in SUM_NAMES})])
    print_table(END_USER_COLUMNS, cells, form)


def _sums(entry: pb.EndUserUsage) -> dict[str, int]:
    counts = (entry.request_count, entry.failed_request_count, entry.input_tokens, entry.output_tokens)
    return dict(zip(SUM_NAMES, (*counts, entry.micro_credits), strict=True))


def _figures(sums: dict[str, int]) -> list[str]:
    *counts, cost = sums.values()
    return [*map(str, counts), credits_text(cost)]
