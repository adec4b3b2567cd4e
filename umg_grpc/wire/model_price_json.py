"""JSON of request bodies about prices of models, by the rules of `administration_api_json.py`."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import invalid, parse
from umg_grpc.wire.protobuf_json import enum_names

UNIT_VALUES: Mapping[str, "pb.BillableUnit.ValueType"] = {
    name: pb.BillableUnit.ValueType(value) for value, name in enum_names(pb.BillableUnit.DESCRIPTOR).items()
}
"""Name of a unit in JSON -> unit."""
MAX_AMOUNT = 2**63 - 1


class PriceJson(Struct, kw_only=True, forbid_unknown_fields=True):
    """Price of one kind of unit in a request body: the fields of `umg.v1.Price`."""

    unit: str
    micro_credits_per_million: Annotated[int, Meta(ge=0, le=MAX_AMOUNT)]
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
    if (unit := UNIT_VALUES.get(price.unit)) is None:
        raise invalid(f"prices[{number}].unit", f"expected one of {', '.join(UNIT_VALUES)}")
    return pb.Price(
        unit=unit,
        size=price.size,
        quality=price.quality,
        micro_credits_per_million=price.micro_credits_per_million,
    )
