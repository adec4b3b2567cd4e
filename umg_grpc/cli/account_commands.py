"""Commands of `umg organizations` and `umg projects`. The docstrings of the command functions are their help texts."""

from typing import Annotated

import typer

from umg_grpc.cli.account_flags import (
    BudgetsFlag,
    ChannelsFlag,
    ConcurrencyFlag,
    ModelsFlag,
    OperationsFlag,
    RpmFlag,
    SoftBudgetsFlag,
    TagsFlag,
    TpmFlag,
    budgets_of,
    limit_of,
    patterns_of,
    tags_of,
)
from umg_grpc.cli.command_headings import CommandsByHeading
from umg_grpc.cli.command_runner import run_async
from umg_grpc.cli.common_flags import AdminTarget, prints_table, takes
from umg_grpc.cli.text_tables import Form

Reference = Annotated[str, typer.Argument(help="Id or name.")]


class AccountSettings:
    """Settings of an account by the flags of a command."""

    def __init__(
        self,
        *,
        models: ModelsFlag = None,
        channels: ChannelsFlag = None,
        operations: OperationsFlag = None,
        rpm: RpmFlag = None,
        tpm: TpmFlag = None,
        concurrency: ConcurrencyFlag = None,
        budget: BudgetsFlag = None,
        soft_budget: SoftBudgetsFlag = None,
        tag: TagsFlag = None,
    ) -> None:
        given = {
            "model_patterns": patterns_of(models),
            "channels": patterns_of(channels),
            "operations": patterns_of(operations),
            "budgets": budgets_of(budget, soft_budget),
            "tags": tags_of(tag),
        }
        self.fields: dict[str, object] = {name: value for name, value in given.items() if value is not None}
        for name, flag, text in (
            ("requests_per_minute", "--rpm", rpm),
            ("tokens_per_minute", "--tpm", tpm),
            ("concurrent_requests", "--concurrency", concurrency),
        ):
            is_given, limit = limit_of(text, flag)
            if is_given:
                self.fields[name] = limit


def account_app(kind: str, noun: str, help_text: str) -> typer.Typer:
    """Return the commands of one kind of accounts. `kind`: as in JSON; `noun`: in help texts."""
    app = typer.Typer(cls=CommandsByHeading, no_args_is_help=True, help=help_text)

    @app.command("create", help=f"Create {noun}, whose settings hold for all keys below it.")
    @takes(AccountSettings, "settings")
    @takes(AdminTarget)
    def create(
        name: Annotated[str, typer.Argument(help="Name for people.")],
        *,
        organization: Annotated[
            str, typer.Option(help="Id or name of its organisation.", hidden=kind != "project")
        ] = "",
        settings: AccountSettings,
        target: AdminTarget,
    ) -> None:
        from umg_grpc.cli import account_command_actions as commands

        parent = {"organization_id": organization} if organization else {}
        run_async(commands.create(target, kind, {"name": name, **parent, **settings.fields}))

    @app.command("list", help="List them with their limits and the use of their budgets.")
    @takes(AdminTarget)
    @prints_table
    def list_accounts(
        *,
        closed: Annotated[bool, typer.Option("--closed", help="Also closed ones.")] = False,
        form: Form,
        target: AdminTarget,
    ) -> None:
        from umg_grpc.cli import account_command_actions as commands

        run_async(commands.list_all(target, kind, form, closed=closed))

    @app.command("show", help=f"Show {noun} with all settings.")
    @takes(AdminTarget)
    @prints_table
    def show(account: Reference, *, form: Form, target: AdminTarget) -> None:
        from umg_grpc.cli import account_command_actions as commands

        run_async(commands.show(target, kind, account, form))

    @app.command("update", help="Change settings; those without a flag stay.")
    @takes(AccountSettings, "settings")
    @takes(AdminTarget)
    def update(
        account: Reference,
        *,
        name: Annotated[str | None, typer.Option(help="New name.")] = None,
        settings: AccountSettings,
        target: AdminTarget,
    ) -> None:
        from umg_grpc.cli import account_command_actions as commands

        fields = {**({} if name is None else {"name": name}), **settings.fields}
        if not fields:
            raise typer.BadParameter("name at least one setting to change, such as --rpm 60; see --help")
        run_async(commands.update(target, kind, account, fields))

    @app.command("close", help="End the calls of all keys below it, until it is opened again.")
    @takes(AdminTarget)
    def close(account: Reference, *, target: AdminTarget) -> None:
        from umg_grpc.cli import account_command_actions as commands

        run_async(commands.set_closed(target, kind, account, closed=True))

    @app.command("open", help="Open it again after it was closed.")
    @takes(AdminTarget)
    def open_account(account: Reference, *, target: AdminTarget) -> None:
        from umg_grpc.cli import account_command_actions as commands

        run_async(commands.set_closed(target, kind, account, closed=False))

    return app


organizations = account_app(
    "organization", "an organisation", "Manage organisations: restrictions, limits and budgets of their projects."
)
projects = account_app("project", "a project", "Manage projects: restrictions, limits and budgets of their keys.")
