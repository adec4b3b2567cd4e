"""Schemas as SDKs write them: from models of pydantic, and as zod writes them for JavaScript."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from ipaddress import IPv4Address
from typing import Annotated, Literal
from uuid import UUID

import pytest
from pydantic import AnyUrl, BaseModel, ConfigDict, Field, TypeAdapter

from umg_sandbox.schema_value_generation import instance, json_of
from umg_sandbox.words_from_prompt import Words

PROMPT = "Book a room in Paris on 2026-03-04 for 3 people, for ann@mail.test."


class Colour(Enum):
    RED = "red"
    GREEN = "green"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = Field(ge=1, le=9)


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: set[str] = Field(min_length=2)


class Room(BaseModel):
    """Room of a hotel."""

    model_config = ConfigDict(extra="forbid")

    code: Annotated[str, Field(pattern=r"^[A-Z]{2}-\d{3}$")]
    beds: list[Literal["single", "double"]] = Field(min_length=1, max_length=3)
    size: tuple[float, float]
    price: Decimal
    note: str | None = Field(default=None, max_length=20)


class Booking(BaseModel):
    rooms: list[Room] = Field(description="All rooms", min_length=2)
    colour: Colour = Colour.RED
    level: Level
    start: date
    at: datetime
    every: time
    lasts: timedelta
    id: UUID
    site: AnyUrl
    host: IPv4Address
    labels: dict[str, int] = Field(min_length=2)
    codes: dict[Annotated[str, Field(pattern="^[a-z]{3}$")], bool] = Field(min_length=1)
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    pets: list[Cat | Dog | None]
    share: float = Field(gt=0, lt=1)
    step: int = Field(multiple_of=5, gt=10)
    anything: object


class Part(BaseModel):
    name: str = Field(min_length=1)
    parts: Sequence["Part"]
    main: "Part | None"


@pytest.mark.parametrize("kind", [Booking, Part, Room, list[Part], dict[str, Cat], int | None, Colour], ids=str)
@pytest.mark.parametrize("only_mentioned", [False, True], ids=["all properties", "mentioned ones"])
@pytest.mark.parametrize("prompt", [PROMPT, ""], ids=["a prompt", "no prompt"])
def test_a_model_of_pydantic_accepts_its_value(kind: object, only_mentioned: bool, prompt: str) -> None:
    adapter: TypeAdapter[object] = TypeAdapter(kind)
    made = instance(adapter.json_schema(), Words(prompt), only_mentioned=only_mentioned)
    adapter.validate_json(json_of(made))


def strict(**properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


@dataclass(frozen=True)
class ZodCase:
    id: str
    schema: dict[str, object]
    pattern: str = ".*"


EMAIL = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$"
UUIDS = r"^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12})$"
WRITTEN = [
    ZodCase("email()", {"type": "string", "format": "email", "pattern": EMAIL}, EMAIL),
    ZodCase("uuid()", {"type": "string", "format": "uuid", "pattern": UUIDS}, UUIDS),
    ZodCase("nanoid()", {"type": "string", "format": "nanoid", "pattern": "^[a-zA-Z0-9_-]{21}$"}, "^[a-zA-Z0-9_-]{21}$"),
    ZodCase("cuid()", {"type": "string", "format": "cuid", "pattern": r"^[cC][^\s-]{8,}$"}, r"^[cC][^\s-]{8,}$"),
    ZodCase("e164()", {"type": "string", "format": "e164", "pattern": r"^\+[1-9]\d{6,14}$"}, r"^\+[1-9]\d{6,14}$"),
    ZodCase("startsWith()", {"type": "string", "pattern": "^https:\\/\\/.*"}, "^https:\\/\\/.*"),
    ZodCase("endsWith()", {"type": "string", "pattern": r".*\.py$"}, r".*\.py$"),
    ZodCase("includes() with min()", {"type": "string", "pattern": "-x-", "minLength": 9}, "-x-.{6}|.{6}-x-|.-x-"),
    ZodCase("int()", {"type": "integer", "minimum": -9007199254740991, "maximum": 9007199254740991}),
    ZodCase("positive() of OpenAPI 3.0", {"type": "number", "minimum": 0, "exclusiveMinimum": True}),
    ZodCase("tuple() of draft 7", {"type": "array", "minItems": 2, "maxItems": 2, "items": [{"type": "string"}, {"type": "null"}]}),
    ZodCase("record(enum)", {"type": "object", "propertyNames": {"type": "string", "enum": ["a", "b"]}, "additionalProperties": {"type": "number"}, "required": ["a", "b"]}),
    ZodCase("Record of TypeBox", {"type": "object", "patternProperties": {"^(.*)$": {"type": "integer"}}, "minProperties": 1}),
    ZodCase("union()", {"anyOf": [strict(a={"type": "string"}), strict(b={"type": "number"}), {"type": "null"}]}),
    ZodCase("intersection()", {"allOf": [strict(a={"type": "string"}) | {"additionalProperties": True}, {"type": "object", "properties": {"b": {"type": "boolean"}}, "required": ["b"]}]}),
    ZodCase("lazy()", {"$ref": "#/properties/it/definitions/Node", "definitions": {"Node": strict(v={"type": "number"}, next={"anyOf": [{"$ref": "#/properties/it/definitions/Node"}, {"type": "null"}]})}}),
]  # fmt: skip


@pytest.mark.parametrize("case", WRITTEN, ids=lambda case: case.id)
def test_a_schema_of_zod_gets_a_value_that_fits_it(case: ZodCase) -> None:
    made = instance(strict(it=case.schema), Words(PROMPT))
    assert isinstance(made, dict)
    assert [*json.loads(json_of(made))] == ["it"]
    assert not isinstance(made["it"], str) or re.search(case.pattern, made["it"]), made
