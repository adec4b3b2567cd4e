"""Commands `umg usage` and `umg requests` and their flags. The docstrings of the functions are the help texts."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from umg_grpc.cli.account_flags import tags_of
from umg_grpc.cli.command_headings import CommandsByHeading
from umg_grpc.cli.command_runner import run_async
from umg_grpc.cli.common_flags import AdminTarget, names, prints_table, takes, time_or_age
from umg_grpc.cli.text_tables import Form

if TYPE_CHECKING:
    from umg_grpc.cli.usage_command_actions import Calls

MIN_PREFIX = 4
requests = typer.Typer(cls=CommandsByHeading, no_args_is_help=True, help="List and look up the records of calls.")

REASONS_HELP = "Only calls that failed for these reasons, as upstream_unpaid."
UntilFlag = Annotated[str | None, typer.Option(metavar="TIME", help="Calls before this time; without it all.")]
KeysFlag = Annotated[str, typer.Option("--key", metavar="KEY,..", help="Only these keys: ids, names or prefixes.")]
ModelsFlag = Annotated[str, typer.Option("--model", metavar="MODEL,..", help="Only these models.")]
ChannelsFlag = Annotated[str, typer.Option("--channel", metavar="NAME,..", help="Only these channels.")]
AgentsFlag = Annotated[str, typer.Option("--agent", metavar="NAME,..", help="Only calls of these programs.")]
EndUsersFlag = Annotated[str, typer.Option("--end-user", metavar="ID,..", help="Only calls for these end users.")]
ProjectsFlag = Annotated[str, typer.Option("--project", metavar="NAME,..", help="Only keys of these projects.")]
TagsFlag = Annotated[str, typer.Option("--tag", metavar="NAME=VALUE,..", help="Only keys with all of these tags.")]
ReasonsFlag = Annotated[str, typer.Option("--reason", metavar="NAME,..", help=REASONS_HELP)]
OperationsFlag = Annotated[str, typer.Option("--operation", metavar="NAME,..", help="Only these operations.")]
PrefixFlag = Annotated[str, typer.Option(metavar="TEXT", help="Only request ids that begin so: 4 characters or more.")]
MinDurationFlag = Annotated[
    float, typer.Option("--min-duration", min=0, metavar="SECONDS", help="Only calls that took at least so long.")
]
FormatFlag = Annotated[
    str, typer.Option("--format", metavar="NAME", help="table, json, jsonl (an object on each line) or csv.")
]
SINCE_HELP = "Calls from this ISO time on, or of a span before now: 30d, 12h, 15m."
BY_HELP = "Groups: model, key, channel, agent, operation, project, owner, or a tag as tag=NAME."
BUCKET_HELP = "Length of the spans in --json: minute, five_minutes, hour, day or month; by default by the time."


@dataclass(frozen=True)
class CallFlags:
    """Flags that select calls, besides the beginning of their time."""

    until: UntilFlag = None
    key: KeysFlag = ""
    model: ModelsFlag = ""
    channel: ChannelsFlag = ""
    agent: AgentsFlag = ""
    project: ProjectsFlag = ""
    tag: TagsFlag = ""

    def since(self, text: str) -> "Calls":
        """Return the selected calls from a time or a span before now on. Raise typer.BadParameter."""
        from umg_grpc.cli.usage_command_actions import Calls

        start = time_or_age(text, "--since")
        end = time_or_age(self.until, "--until") if self.until is not None else None
        if end is not None and end <= start:
            raise typer.BadParameter("it is not after --since", param_hint="--until")
        lists = names(self.key), names(self.model), names(self.channel), names(self.agent), names(self.project)
        return Calls(start, end, *lists, tags=tags_of(names(self.tag)) or {})


@takes(AdminTarget)
@takes(CallFlags, "flags")
@prints_table
def usage(
    *,
    since: Annotated[str, typer.Option(metavar="TIME", help=SINCE_HELP)] = "30d",
    by: Annotated[
        str,
        typer.Option(
            metavar="NAME,..",
            help="Groups: key, model, channel, agent, operation, and one of minute, hour, day, month; or end-user.",
        ),
    ] = "day,key,model",
    flags: CallFlags,
    printed: FormatFlag = "table",
    chart: Annotated[
        bool | None, typer.Option("--chart/--no-chart", help="Bars in the table; without it on a terminal only.")
    ] = None,
    form: Form,
    target: AdminTarget,
) -> None:
    """Print the calls, tokens and cost of the past, by time, key, model, channel, agent, operation or end user."""
    from umg_grpc.cli import usage_command_actions as commands
    from umg_grpc.cli.end_user_tables import END_USER_DIMENSION, end_users

    groups = tuple(dict.fromkeys(names(by)))
    calls = flags.since(since)
    if groups == (END_USER_DIMENSION,):
        if flags.model or flags.channel or flags.agent or chart:
            raise typer.BadParameter("end users are counted by day and key alone", param_hint="--by")
        run_async(end_users(target, calls, _form(form, printed)))
        return
    if set(groups) - set(commands.DIMENSION_NAMES) or len(set(groups) & set(commands.TIME_BUCKETS)) > 1:
        known = ", ".join(commands.DIMENSION_NAMES)
        message = f"expected names of {known}, of the first four at most one, or {END_USER_DIMENSION} alone"
        raise typer.BadParameter(message, param_hint="--by")
    run_async(commands.usage(target, groups, calls, _form(form, printed), chart=chart))


@takes(AdminTarget)
@takes(CallFlags, "flags")
@prints_table
def summary(
    *,
    since: Annotated[str, typer.Option(metavar="TIME", help=SINCE_HELP)] = "24h",
    by: Annotated[str, typer.Option(metavar="NAME", help=BY_HELP)] = "model",
    bucket: Annotated[str, typer.Option(metavar="NAME", help=BUCKET_HELP)] = "",
    flags: CallFlags,
    form: Form,
    target: AdminTarget,
) -> None:
    """Print calls, cost, durations and failures of the past beside those of the same time before it."""
    from umg_grpc.cli import call_summary_tables as commands

    run_async(commands.call_summary(target, flags.since(since), commands.Groups.of(by, bucket), form))


@requests.command("list")
@takes(AdminTarget)
@takes(CallFlags, "flags")
@prints_table
def list_requests(
    *,
    since: Annotated[str, typer.Option(metavar="TIME", help=SINCE_HELP)] = "24h",
    flags: CallFlags,
    end_user: EndUsersFlag = "",
    reason: ReasonsFlag = "",
    operation: OperationsFlag = "",
    request_id_prefix: PrefixFlag = "",
    min_duration: MinDurationFlag = 0,
    failed: Annotated[bool, typer.Option("--failed", help="Only failed calls.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="Most records.")] = 50,
    printed: FormatFlag = "table",
    form: Form,
    target: AdminTarget,
) -> None:
    """Print the records of calls, newest first."""
    from umg_grpc.cli import request_record_tables as commands

    if 0 < len(request_id_prefix) < MIN_PREFIX:
        raise typer.BadParameter(f"expected {MIN_PREFIX} characters or more", param_hint="--request-id-prefix")
    calls = replace(
        flags.since(since),
        end_users=names(end_user),
        reasons=commands.reasons_of(reason),
        operations=commands.operations_of(operation),
        request_id_prefix=request_id_prefix,
        min_seconds=min_duration,
    )
    run_async(commands.list_requests(target, calls, limit, _form(form, printed), failed=failed))


@requests.command("show")
@takes(AdminTarget)
@prints_table
def show_request(
    request_id: Annotated[str, typer.Argument(help="Request id of the call, from its `x-request-id`.")],
    *,
    form: Form,
    target: AdminTarget,
) -> None:
    """Print the record of a call: key, model, outcome, error, tokens, cost, and each attempt at a channel."""
    from umg_grpc.cli import request_record_tables as commands

    run_async(commands.show_request(target, request_id, form))


def _form(form: Form, printed: str) -> Form:
    """Return the form that the flags select, of which `--format` is the older one. Raise BadParameter."""
    if printed not in set(Form):
        raise typer.BadParameter(f"expected one of {', '.join(Form)}", param_hint="--format")
    return form if printed == Form.TABLE else Form(printed)
