"""Commands `umg prices` and their flags. The docstrings of the functions are the help texts."""

from pathlib import Path
from typing import Annotated

import typer

from umg_grpc.cli.command_headings import CommandsByHeading
from umg_grpc.cli.command_runner import run_async
from umg_grpc.cli.common_flags import DATA_FOLDER, AdminTarget, ConfigFlag, DataFlag, prints_table, takes
from umg_grpc.cli.text_tables import Form

app = typer.Typer(
    cls=CommandsByHeading,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="List, explain and update the prices of models, and set them while a gateway runs.",
)

ModelName = Annotated[str, typer.Argument(metavar="MODEL", help="Id or alias of a model of the gateway.")]
ChannelFlag = Annotated[str, typer.Option("--channel", help="Only at this channel; without it at all.")]
NoteFlag = Annotated[str, typer.Option("--note", help="Reason, which is shown with the price.")]
VendorFlag = Annotated[str, typer.Option(metavar="NAME", help="Only this vendor: a name of `umg providers`.")]


@app.command("list")
@prints_table
def list_(
    pattern: Annotated[str, typer.Argument(help="Ids of models, with * for any text.")] = "*",
    *,
    vendor: VendorFlag = "",
    form: Form,
    config: ConfigFlag = None,
    data: DataFlag = DATA_FOLDER,
) -> None:
    """List the public prices in credits: for a million tokens, or for one unit of any other kind."""
    from umg_grpc.cli.price_command_actions import list_prices
    from umg_grpc.process.config_loading import load

    list_prices(load(config, data).public_prices, pattern, vendor, form)


@app.command()
def explain(
    model: Annotated[str, typer.Argument(help="Id of a model in the config, or a provider's id.")],
    *,
    vendor: Annotated[
        str, typer.Option(metavar="NAME", help="Vendor of a provider's id: a name of `umg providers`.")
    ] = "",
    config: ConfigFlag = None,
    data: DataFlag = DATA_FOLDER,
) -> None:
    """Print the prices of a model at each of its channels, with their conditions, source and date."""
    from umg_grpc.cli.price_command_actions import explain_model
    from umg_grpc.process.config_loading import load

    run_async(explain_model(load(config, data), Path(data), model, vendor))


@app.command()
def update(
    source: Annotated[
        str, typer.Argument(help="File or URL: the cost map of LiteLLM, the JSON file of genai-prices, or own rows.")
    ],
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the changes, and write nothing.")] = False,
    config: ConfigFlag = None,
    data: DataFlag = DATA_FOLDER,
) -> None:
    """Replace the file of public prices by those of a file or URL, and print the changes."""
    from umg_grpc.cli.price_command_actions import update_prices
    from umg_grpc.process.config_loading import load_without_prices, price_file

    found = load_without_prices(config)
    update_prices(source, price_file(found, Path(data)), dry_run=dry_run)


@app.command("models")
@takes(AdminTarget)
@prints_table
def list_models(
    text: Annotated[str, typer.Argument(metavar="[TEXT]", help="Part of an id, an alias or a channel.")] = "",
    *,
    unpriced: Annotated[bool, typer.Option("--unpriced", help="Only models without a price.")] = False,
    form: Form,
    target: AdminTarget,
) -> None:
    """List the models of the gateway with their prices and sources, those without a price first."""
    from umg_grpc.cli import model_price_actions as commands

    run_async(commands.list_model_prices(target, text, form, unpriced_only=unpriced))


@app.command("set")
@takes(AdminTarget)
def set_price(
    model: ModelName,
    prices: Annotated[
        list[str], typer.Argument(metavar="UNIT=CREDITS...", help="For example input=1.25 output=10, or image=0.04.")
    ],
    *,
    channel: ChannelFlag = "",
    note: NoteFlag = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the result, and change nothing.")] = False,
    target: AdminTarget,
) -> None:
    """Set the prices of a model, also for later starts, unless the config states them."""
    from umg_grpc.cli import model_price_actions as commands

    run_async(commands.set_model_price(target, model, channel, prices, note, dry_run=dry_run))


@app.command("reset")
@takes(AdminTarget)
def reset_price(model: ModelName, *, channel: ChannelFlag = "", note: NoteFlag = "", target: AdminTarget) -> None:
    """Take set prices of a model back: the config, the provider or public prices hold again."""
    from umg_grpc.cli import model_price_actions as commands

    run_async(commands.reset_model_price(target, model, channel, note))
