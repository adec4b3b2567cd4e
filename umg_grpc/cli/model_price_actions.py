"""Implementation of the commands of `umg prices` that show and set the prices of models, on a database or a gateway."""

from collections.abc import Sequence

import typer

from umg_grpc.cli.admin_client import pages
from umg_grpc.cli.admin_connection import opened
from umg_grpc.cli.common_flags import AdminTarget
from umg_grpc.cli.text_tables import Column, Fit, Form, print_line, print_table
from umg_grpc.cli.time_texts import time_text
from umg_grpc.knowledge.price_texts import PriceTextError, prices_text, read_price
from umg_grpc.v1 import pb
from umg_grpc.wire.priced_model_texts import source_text, text_by_channel
from umg_grpc.wire.protobuf_json import enum_names, to_json

PAGE_SIZE = 1000
NO_PRICE = "none"
OPERATION_NAMES = enum_names(pb.ModelOperation.DESCRIPTOR)
MODEL_PRICE_COLUMNS = (
    Column("model"),
    Column("price", fit=Fit.LISTED),
    Column("source", 2, Fit.LISTED),
    Column("calls in 24 h", 3, is_number=True),
    Column("keys", 4, is_number=True),
    Column("operations", 5, Fit.LISTED),
    Column("changed", 3, Fit.FOLDED),
)


async def list_model_prices(target: AdminTarget, text: str, form: Form, *, unpriced_only: bool) -> None:
    """Print the models with their prices, those without one first."""
    request = pb.ListModelPricesRequest(text=text, unpriced_only=unpriced_only, page_size=PAGE_SIZE)
    found = pb.ListModelPricesResponse()
    async with opened(target) as admin:
        async for page in pages(admin, request, pb.ListModelPricesResponse):
            found.models.extend(page.models)
    found.overrides_without_model.extend(page.overrides_without_model)
    print_model_prices(found, form)


def print_model_prices(found: pb.ListModelPricesResponse, form: Form) -> None:
    """Print models with their prices in a form; JSON has all their fields."""
    print_table(MODEL_PRICE_COLUMNS, map(_row, found.models), form, map(to_json, found.models))
    if form.is_text:
        for override in found.overrides_without_model:
            print_line(f"{override.model}: {change_text(override)}")


async def set_model_price(
    target: AdminTarget, model: str, channel: str, prices: Sequence[str], note: str, *, dry_run: bool
) -> None:
    """Set prices of a model, each as UNIT=CREDITS, or print the result of a dry run."""
    request = pb.UpdateModelPriceRequest(
        model=model, channel=channel, prices=map(_price, prices), note=note, dry_run=dry_run
    )
    await _update(target, request)


async def reset_model_price(target: AdminTarget, model: str, channel: str, note: str) -> None:
    """Take set prices of a model back."""
    await _update(target, pb.UpdateModelPriceRequest(model=model, channel=channel, note=note))


async def _update(target: AdminTarget, request: pb.UpdateModelPriceRequest) -> None:
    async with opened(target) as admin:
        response = await admin.call(request, pb.UpdateModelPriceResponse)
    if not response.HasField("model"):
        print_line(f"{request.model}: no channel serves it any more; its price is taken back")
        return
    verb = "would have" if request.dry_run else "has"
    end = "" if request.dry_run else "; gateways charge by it within seconds"
    print_line(f"{response.model.model} {verb} {text_by_channel(response.model, _price_text)}{end}")


def change_text(override: pb.ModelPriceOverride) -> str:
    """Return set prices as text: `input 2 set by ada, 2026-11-30T13:41:02Z: contract`."""
    place = f" at {override.channel}" if override.channel else ""
    note = f": {override.note}" if override.note else ""
    reason = f" (without effect: {override.ineffective_reason})" if override.ineffective_reason else ""
    actor, time = override.actor_name, time_text(override.update_time)
    return f"{prices_text(override.prices)}{place} set by {actor}, {time}{note}{reason}"


def _price(text: str) -> pb.Price:
    name, equals, credits_ = text.partition("=")
    if not equals:
        raise typer.BadParameter(f"expected UNIT=CREDITS, such as input=1.25, not {text}", param_hint="PRICE")
    try:
        return read_price(name, credits_)
    except PriceTextError as error:
        raise typer.BadParameter(str(error), param_hint="PRICE") from None


def _row(each: pb.PricedModel) -> tuple[str, ...]:
    return (
        each.model,
        text_by_channel(each, _price_text),
        text_by_channel(each, source_text),
        str(each.calls),
        str(each.key_count) if each.HasField("key_count") else "",
        ", ".join(OPERATION_NAMES.get(operation, "") for operation in each.operations),
        "; ".join(map(change_text, each.overrides)),
    )


def _price_text(each: pb.ModelChannelPrice) -> str:
    return prices_text(each.prices) or NO_PRICE
