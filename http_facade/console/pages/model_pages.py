"""Pages of models: the list with unpriced ones first, and one model with its prices, their sources and its routes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote as quoted
from urllib.parse import quote

from http_facade.console import form_values
from http_facade.console.address_filters import ListPages
from http_facade.console.call_outcomes import OPERATION_NAMES, Mark
from http_facade.console.figure_texts import UNKNOWN_TEXT
from http_facade.console.object_names import key_names
from http_facade.console.page_interface import Done, Form, Visit, object_path
from http_facade.console.pages.audit_page import history_path
from http_facade.console.pages.channel_pages import channel_path
from umg_grpc.base.errors import UmgError
from umg_grpc.base.printable_text import printable
from umg_grpc.knowledge.price_texts import (
    UNIT_PRICE_NAMES,
    PriceTextError,
    price_credits,
    price_name,
    prices_text,
    read_price,
)
from umg_grpc.operations import OPERATIONS_BY_VALUE
from umg_grpc.v1 import pb
from umg_grpc.wire.priced_model_texts import source_text, text_by_channel

PAGE_SIZE = 50
MODELS_PATH = "/console/models"
PRICE_PREFIX, OTHERS_FIELD, LIST_FIELD = "price_", "others", "list"
"""Beginning of the fields of prices, field of further prices, and field of the forms in the list."""
PRICED_MARK, UNPRICED_MARK = Mark("good", "priced"), Mark("warn", "no price")


@dataclass(frozen=True)
class KeyLink:
    """Key that called a model."""

    name: str
    path: str


@dataclass(frozen=True)
class PriceField:
    """Field of a form for the price of one unit."""

    name: str
    unit: str
    value: str


@dataclass(frozen=True)
class PricedModelLine:
    """Row of the list of models."""

    name: str
    path: str
    mark: Mark
    price: str
    source: str
    operations: str
    calls: int
    calls_path: str
    keys: Sequence[KeyLink]
    more_keys: int
    fields: Sequence[PriceField]
    """Fields of the form that sets a price; empty if the person may not set one."""
    seen: str
    """Version of the set prices that the form shows."""


@dataclass(frozen=True)
class ModelTable:
    """Content of the list of models."""

    rows: Sequence[PricedModelLine]
    unpriced: int
    called_unpriced: int
    text: str
    unpriced_only: bool
    sees_sources: bool
    lost: Sequence[pb.ModelPriceOverride]
    pages: ListPages
    command: str


@dataclass(frozen=True)
class ChannelPriceLine:
    """Price of a model at a channel."""

    channel: str
    path: str
    upstream_model: str
    price: str
    source: str
    origin: str
    conditions: Sequence[str]
    unpriced: str


@dataclass(frozen=True)
class RouteLine:
    """Channel of a model in the order of a call."""

    channel: str
    path: str
    upstream_model: str
    reasons: str
    is_called: bool


@dataclass(frozen=True)
class RouteView:
    """Channels of a model for one operation."""

    operation: str
    problem: str
    channels: Sequence[RouteLine]


@dataclass(frozen=True)
class OverrideLine:
    """Price that was set."""

    override: pb.ModelPriceOverride
    price: str
    channel: str


@dataclass(frozen=True)
class ModelView:
    """Content of the page of a model."""

    line: PricedModelLine
    aliases: str
    place: str
    channels: Sequence[ChannelPriceLine]
    overrides: Sequence[OverrideLine]
    routes: Sequence[RouteView]
    may_set: bool
    may_reset: bool
    others: str
    """Prices of units without a field, as the form has them."""
    channel_names: Sequence[str]
    usage_path: str
    history: str


async def load_models(visit: Visit) -> ModelTable:
    """Return a page of the models, unpriced ones first."""
    filters = visit.filters
    text, unpriced_only = filters.text("text"), bool(filters.text("unpriced"))
    request = pb.ListModelPricesRequest(
        text=text, unpriced_only=unpriced_only, page_size=PAGE_SIZE, page_token=filters.page_token
    )
    response = await visit.calls.call(request, pb.ListModelPricesResponse)
    names = await key_names(visit.calls, (key_id for model in response.models for key_id in model.key_ids))
    flag = " --unpriced" if unpriced_only else ""
    return ModelTable(
        rows=[_line(visit, model, names) for model in response.models],
        unpriced=response.unpriced_models,
        called_unpriced=response.called_unpriced_models,
        text=text,
        unpriced_only=unpriced_only,
        sees_sources=any(model.channels for model in response.models),
        lost=list(response.overrides_without_model),
        pages=filters.pages(response.next_page_token),
        command=_command(text) + flag,
    )


def _command(text: str) -> str:
    return f"umg prices models {quoted(text)}" if text else "umg prices models"


async def load_model(visit: Visit) -> ModelView:
    """Return one model. Raise UmgError(MODEL_NOT_FOUND)."""
    request = pb.ListModelPricesRequest(model=visit.parameters["model"])
    [model] = (await visit.calls.call(request, pb.ListModelPricesResponse)).models
    names = await key_names(visit.calls, model.key_ids)
    line = _line(visit, model, names, with_form=True)
    shown = {field.unit for field in line.fields}
    return ModelView(
        line=line,
        aliases=printable(", ".join(model.aliases)),
        place=printable(model.price_place),
        channels=[_channel(each) for each in model.channels],
        overrides=[OverrideLine(each, prices_text(each.prices), printable(each.channel)) for each in model.overrides],
        routes=[_route(each) for each in model.routes],
        may_set=bool(line.fields),
        may_reset=visit.rights.may(pb.PERMISSION_PRICES_WRITE),
        others=", ".join(
            f"{price_name(each)}={price_credits(each)}" for each in _set(model) if price_name(each) not in shown
        ),
        channel_names=[each.channel for each in model.channels],
        usage_path=f"/console/usage?by=key&model={quote(model.model, safe='')}",
        history=history_path(visit, model.model, "model"),
    )


async def set_price(visit: Visit, form: Form) -> Done:
    """Set the prices of the model."""
    prices = [*_prices(form)]
    if not prices:
        message = "not saved: state the price of at least one unit, 0 for none"
        raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field=OTHERS_FIELD)
    await _check_seen(visit, form)
    request = pb.UpdateModelPriceRequest(
        model=visit.parameters["model"],
        channel=form_values.text(form, "channel"),
        prices=prices,
        note=form_values.text(form, "note"),
    )
    await visit.calls.call(request, pb.UpdateModelPriceResponse)
    return Done(MODELS_PATH if LIST_FIELD in form else model_path(request.model), "price_set")


async def reset_price(visit: Visit, form: Form) -> Done:
    """Take a set price of the model back."""
    await _check_seen(visit, form)
    request = pb.UpdateModelPriceRequest(
        model=visit.parameters["model"], channel=form_values.text(form, "channel"), note=form_values.text(form, "note")
    )
    response = await visit.calls.call(request, pb.UpdateModelPriceResponse)
    return Done(model_path(request.model) if response.HasField("model") else MODELS_PATH, "price_reset")


async def _check_seen(visit: Visit, form: Form) -> None:
    """Raise UmgError(ALREADY_EXISTS) if prices of the model were set since the form was shown."""
    if form_values.SEEN_FIELD not in form:
        return
    request = pb.ListModelPricesRequest(model=visit.parameters["model"])
    [model] = (await visit.calls.call(request, pb.ListModelPricesResponse)).models
    form_values.check_seen(form, *model.overrides)


def model_path(model: str) -> str:
    """Return the path of the page of a model."""
    return object_path("models", model)


def _line(visit: Visit, model: pb.PricedModel, names: Mapping[str, str], *, with_form: bool = False) -> PricedModelLine:
    may_set = visit.rights.may(pb.PERMISSION_PRICES_WRITE) and not model.price_place
    has_form = may_set and (model.unpriced or with_form)
    return PricedModelLine(
        name=printable(model.model),
        path=model_path(model.model),
        mark=UNPRICED_MARK if model.unpriced else PRICED_MARK,
        price=printable(text_by_channel(model, _price_text)) or prices_text(model.prices) or UNKNOWN_TEXT,
        source=printable(text_by_channel(model, source_text)),
        operations=", ".join(OPERATION_NAMES.get(operation, "") for operation in model.operations),
        calls=model.calls,
        calls_path=visit.calls_path(model=model.model) if model.calls else "",
        keys=[KeyLink(printable(names.get(each, each)), object_path("keys", each)) for each in model.key_ids],
        more_keys=model.key_count - len(model.key_ids),
        fields=_fields(model) if has_form else [],
        seen=form_values.version(*model.overrides),
    )


def _fields(model: pb.PricedModel) -> list[PriceField]:
    """Return the fields of the units by which the operations of a model are charged, with the prices that were set."""
    units = {unit for each in model.operations for unit in OPERATIONS_BY_VALUE[each].units}
    present = {price_name(each): price_credits(each) for each in _set(model)}
    names = [UNIT_PRICE_NAMES[unit] for unit in sorted(units)]
    return [PriceField(f"{PRICE_PREFIX}{name}", name, present.get(name, "")) for name in names]


def _set(model: pb.PricedModel) -> Collection[pb.Price]:
    """Return the prices that were set for all channels of a model."""
    return next((each.prices for each in model.overrides if not each.channel), ())


def _prices(form: Form) -> Sequence[pb.Price]:
    """Return the prices in a form. Raise UmgError(INVALID_FIELD)."""
    given = [
        (field, field.removeprefix(PRICE_PREFIX), text)
        for field, text in form.items()
        if field.startswith(PRICE_PREFIX) and text.strip()
    ]
    given += [(OTHERS_FIELD, *each.partition("=")[::2]) for each in form_values.names(form, OTHERS_FIELD)]
    found = []
    for field, name, text in given:
        try:
            found.append(read_price(name, text))
        except PriceTextError as error:
            raise UmgError(pb.ERROR_REASON_INVALID_FIELD, f"not saved: {error}", field=field) from None
    return found


def _price_text(each: pb.ModelChannelPrice) -> str:
    return prices_text(each.prices) or UNKNOWN_TEXT


def _channel(each: pb.ModelChannelPrice) -> ChannelPriceLine:
    return ChannelPriceLine(
        channel=printable(each.channel),
        path=channel_path(each.channel),
        upstream_model=printable(each.upstream_model),
        price=printable(prices_text(each.prices)),
        source=printable(source_text(each)),
        origin=printable(each.origin),
        conditions=[printable(text) for text in each.conditional_prices],
        unpriced=", ".join(OPERATION_NAMES.get(operation, "") for operation in each.unpriced_operations),
    )


def _route(route: pb.ModelRoute) -> RouteView:
    return RouteView(
        operation=OPERATION_NAMES.get(route.operation, ""),
        problem=printable(route.problem),
        channels=[
            RouteLine(
                channel=printable(each.channel),
                path=channel_path(each.channel),
                upstream_model=printable(each.upstream_model),
                reasons=printable(", ".join(each.reasons)),
                is_called=each.is_called,
            )
            for each in route.channels
        ],
    )
