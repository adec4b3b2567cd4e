"""Commands of `umg users` and `umg audit`. The docstrings of the command functions are the help texts."""

from collections.abc import Sequence
from typing import Annotated

import typer

from umg_grpc.access.principals import Role
from umg_grpc.cli.command_headings import CommandsByHeading
from umg_grpc.cli.command_runner import run_async
from umg_grpc.cli.common_flags import AdminTarget, prints_table, takes, time_or_age
from umg_grpc.cli.text_tables import Form

users = typer.Typer(
    cls=CommandsByHeading, no_args_is_help=True, help="Manage people and service accounts, and their roles."
)
audit = typer.Typer(cls=CommandsByHeading, no_args_is_help=True, help="Read the log of acts of administration.")

Reference = Annotated[str, typer.Argument(help="Id, e-mail address or name.")]
RolesFlag = Annotated[
    list[str] | None,
    typer.Option(
        "--role", metavar="ROLE[:ACCOUNT]", help="owner, admin, member, viewer or billing; may be repeated; or none."
    ),
]
SinceFlag = Annotated[str | None, typer.Option("--since", metavar="TIME", help="24h, 30d or an ISO 8601 time.")]
NO_ROLES = "none"


@users.command("create")
@takes(AdminTarget)
def create_user(
    name: Annotated[str, typer.Argument(help="Name for people.")],
    *,
    email: Annotated[str, typer.Option(help="Address with which the person signs in.")] = "",
    role: RolesFlag = None,
    service_account: Annotated[bool, typer.Option("--service-account", help="A program, not a person.")] = False,
    target: AdminTarget,
) -> None:
    """Create a person or a service account."""
    from umg_grpc.cli import user_command_actions as commands

    fields = {"name": name, "email": email, "memberships": _roles(role)}
    run_async(commands.create(target, "service_account" if service_account else "person", fields))


@users.command("list")
@takes(AdminTarget)
@prints_table
def list_users(
    *,
    disabled: Annotated[bool, typer.Option("--disabled", help="Also disabled ones.")] = False,
    form: Form,
    target: AdminTarget,
) -> None:
    """List people and service accounts with their roles."""
    from umg_grpc.cli import user_command_actions as commands

    run_async(commands.list_all(target, form, disabled=disabled))


@users.command("show")
@takes(AdminTarget)
@prints_table
def show_user(user: Reference, *, form: Form, target: AdminTarget) -> None:
    """Show a person or a service account."""
    from umg_grpc.cli import user_command_actions as commands

    run_async(commands.show(target, user, form))


@users.command("update")
@takes(AdminTarget)
def update_user(
    user: Reference,
    *,
    name: Annotated[str | None, typer.Option(help="New name.")] = None,
    email: Annotated[str | None, typer.Option(help="New address; empty: none.")] = None,
    role: RolesFlag = None,
    enable: Annotated[bool, typer.Option("--enable", help="Enable a disabled user again.")] = False,
    target: AdminTarget,
) -> None:
    """Change a user; settings without a flag stay. The roles are replaced."""
    from umg_grpc.cli import user_command_actions as commands

    given = {"name": name, "email": email, "memberships": _roles(role) if role else None}
    fields: dict[str, object] = {field: value for field, value in given.items() if value is not None}
    if enable:
        fields["disabled"] = False
    if not fields:
        raise typer.BadParameter("name at least one setting to change, such as --role viewer; see --help")
    run_async(commands.update(target, user, fields))


@users.command("disable")
@takes(AdminTarget)
def disable_user(user: Reference, *, target: AdminTarget) -> None:
    """Disable a user: it cannot sign in, and calls with its keys end within seconds."""
    from umg_grpc.cli import user_command_actions as commands

    run_async(commands.update(target, user, {"disabled": True}))


@users.command("sessions")
@takes(AdminTarget)
@prints_table
def list_sessions(
    user: Annotated[str, typer.Argument(help="Id, e-mail address or name; without it the own sessions.")] = "",
    *,
    form: Form,
    target: AdminTarget,
) -> None:
    """List the open sessions of a user, newest first."""
    from umg_grpc.cli import user_command_actions as commands

    run_async(commands.list_sessions(target, user, form))


@users.command("end-session")
@takes(AdminTarget)
def end_session(session: Annotated[str, typer.Argument(help="Id of the session.")], *, target: AdminTarget) -> None:
    """End a session: its next request is refused."""
    from umg_grpc.cli import user_command_actions as commands

    run_async(commands.end_session(target, session))


@audit.command("list")
@takes(AdminTarget)
@prints_table
def list_events(
    *,
    since: SinceFlag = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Most events, the newest.")] = 100,
    refused: Annotated[bool, typer.Option("--refused", help="Refused acts only.")] = False,
    form: Form,
    target: AdminTarget,
) -> None:
    """List the newest acts, with actor, object, and settings before and after."""
    from umg_grpc.cli import user_command_actions as commands

    begin = None if since is None else time_or_age(since, "--since")
    run_async(commands.list_events(target, form, begin, limit, refused=refused))


@audit.command("export")
@takes(AdminTarget)
def export_events(*, since: SinceFlag = None, target: AdminTarget) -> None:
    """Print all acts since a time as JSON lines, newest first."""
    from umg_grpc.cli import user_command_actions as commands

    begin = None if since is None else time_or_age(since, "--since")
    run_async(commands.export_events(target, begin))


def _roles(texts: Sequence[str] | None) -> list[dict[str, str]]:
    found = list[dict[str, str]]()
    for text in texts or ():
        role, colon, account = text.partition(":")
        if colon and not account:  # of a variable that is not set; without an account it would be the whole gateway
            message = f"name the account after `{text}`; for the whole gateway leave the colon out: `{role}`"
            raise typer.BadParameter(message, param_hint="--role")
        if text != NO_ROLES and role not in list(Role):
            raise typer.BadParameter(f"there is no role `{role}`; choose from {', '.join(Role)}", param_hint="--role")
        if text != NO_ROLES:
            found.append({"role": role, "account_id": account})
    return found
