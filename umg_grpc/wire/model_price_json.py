"""JSON of request bodies about prices of models, by the rules of `administration_api_json.py`."""

from typing import Annotated

from msgspec import Meta, Struct

from umg_grpc.knowledge.price_texts import ALL_UNITS
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import INT64_MAX, invalid, parse


class PriceJson(Struct, kw_only=True, forbid_unknown_fields=True):
    """Price of one kind of unit in a request body: the fields of `umg.v1.Price`."""

    unit: str
    micro_credits_per_million: Annotated[int, Meta(ge=0, le=INT64_MAX)]
    size: str = ""
    quality: str = ""


class UpdateModelPriceBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """Body of the request that sets the prices of a model, or takes them back."""

    prices: list[PriceJson] | None
    channel: str = ""
    note: str = ""
    dry_run: bool = False


def decode_update_model_price(body: bytes) -> pb.UpdateModelPriceRequest:
    """Decode a change of prices: null or no prices take set ones back. Raise UmgError naming the invalid field."""
    parsed = parse(UpdateModelPriceBody, body)
    return pb.UpdateModelPriceRequest(
        channel=parsed.channel,
        prices=[_price(number, each) for number, each in enumerate(parsed.prices or ())],
        note=parsed.note,
        dry_run=parsed.dry_run,
    )


def _price(number: int, price: PriceJson) -> pb.Price:
    if (unit := ALL_UNITS.get(price.unit)) is None:
        raise invalid(f"prices[{number}].unit", f"expected one of {', '.join(ALL_UNITS)}")
    return pb.Price(
        unit=unit,
        size=price.size,
        quality=price.quality,
        micro_credits_per_million=price.micro_credits_per_million,
    )
