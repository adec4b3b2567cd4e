"""Page docs/images.md: the gateway behaves as it states on images."""

import json
import re

import pytest

from http_facade.routes import DEPLOYMENT_ROUTES, ROUTE_TABLE, Shape
from tests.docs.tables import DOCS, quoted, rows
from tests.documents.spec.callers import frames_of
from tests.support.callers.api import ApiClient
from umg_grpc.knowledge.families.image_model_rules import (
    FAMILY_FIELDS,
    GENERAL_RULES,
    IMAGE_MODELS,
    MAX_GROUP,
    MAX_SIDE,
    MIN_SIDE,
    QUALITY_TIERS,
    RATIO_PIXELS,
    SIZE_TIERS,
    ImageRules,
)
from umg_grpc.v1.limits import MAX_COUNT
from umg_grpc.wire.core.image_file_headers import MAX_PIXELS
from umg_grpc.wire.images.request import WHOLE_NAMES
from umg_grpc.wire.images.schema import ImageBody

PAGE = (DOCS / "images.md").read_text(encoding="utf-8")
FLAT = " ".join(PAGE.split())
EXAMPLES = re.findall(r"\n`POST (/v1/images/\w+)`:\n\n```json\n(.*?)```", PAGE, re.DOTALL)

pytestmark = pytest.mark.asyncio(loop_scope="module")


def _count(least: int, most: int) -> str:
    return ("none" if not most else str(most)) if least == most else f"{least} to {most}"


def _sizes(row: ImageRules) -> tuple[str, str]:
    if row.sizes is RATIO_PIXELS:
        return "ten ratios, or pixels", "`1:1`, or the ratio of the last image"
    sizes = "`<width>*<height>`" if row.sizes is None else str(len(row.sizes))
    default = f"`{row.default_size}`" if row.default_size else ""
    return sizes, default or ("that of the image" if row.family == "imgB" else "the ratio of the last image")


async def test_the_table_of_models_is_that_of_the_families() -> None:
    expected = []
    for model, row in IMAGE_MODELS.items():
        group = f", a group 1 to {MAX_GROUP}" if "sequential_image_generation" in row.fields else ""
        made = _count(1, row.max_n) + group
        form = "bytes" if row.always_bytes else "addresses"
        expected.append([f"`{model}`", _count(row.min_inputs, row.max_inputs), made, *_sizes(row), form])
    assert rows(PAGE, "Models") == expected


async def test_the_sizes_are_those_of_the_families() -> None:
    shown = set(re.findall(r"`(\d+x\d+)`", PAGE))
    lists = [row.sizes for row in IMAGE_MODELS.values() if row.sizes is not None and row.sizes is not RATIO_PIXELS]
    assert shown == {size for sizes in lists for size in sizes}
    assert f"has {MIN_SIDE} to {MAX_SIDE} pixels" in FLAT
    assert set(re.findall(r"`(\d+:\d+)`", PAGE)) == RATIO_PIXELS.keys()


CANONICAL = {
    "mime_type": "output_mime_type",
    "output_format": "output_mime_type",
    "sequential_image_generation_options": "max_sequential_images",
    "optimize_prompt_options": "optimize_prompt_mode",
    **WHOLE_NAMES,
}
"""Field of a body -> its canonical name where they differ."""
OWN = {"mime_type": ["famG"], "output_format": ["imgC"]}


async def test_the_table_of_fields_is_that_of_the_families() -> None:
    table = rows(PAGE, "Fields")
    names = [quoted(cells[0])[0] for cells in table]
    assert {CANONICAL.get(name, name) for name in names} == FAMILY_FIELDS
    for name, cells in zip(names, table, strict=True):
        owners = [family for family, row in GENERAL_RULES.items() if CANONICAL.get(name, name) in row.fields]
        assert cells[1].split(", ") == OWN.get(name, owners)
        values = {value for row in GENERAL_RULES.values() for value in row.values.get(CANONICAL.get(name, name), ())}
        shown = {value for value in quoted(cells[2]) if not value.startswith("img")}
        if values and name not in OWN and not name.endswith("_options") and name != "aspect_ratio":
            assert shown >= values
    common = re.search(r"All models accept (.*?)\.", FLAT)
    assert common is not None
    assert {*quoted(common[1]), *names} <= set(ImageBody.__struct_fields__) | {"negative_prompt", "prompt_extend"}
    assert (f"0 to {MAX_COUNT}" in FLAT, f"at most {MAX_PIXELS} pixels" in FLAT) == (True, True)
    assert set(QUALITY_TIERS.values()) <= SIZE_TIERS.keys()


async def test_the_limit_of_a_file_is_that_of_the_families() -> None:
    [limit] = {row.max_input_bytes for row in IMAGE_MODELS.values()} - {None}
    assert f"at most {limit} bytes" in FLAT


async def test_every_path_is_on_the_page() -> None:
    rows = [route for route in ROUTE_TABLE if route not in DEPLOYMENT_ROUTES]
    paths = {route.path.rstrip("/") for route in rows if route.shape is Shape.GENERATE_IMAGE}
    assert set(re.findall(r"(/v1/images/\w+)", PAGE)) == paths


@pytest.mark.parametrize(("path", "body"), EXAMPLES, ids=range(len(EXAMPLES)))
async def test_an_example_is_answered(path: str, body: str, call: ApiClient) -> None:
    request = json.loads(body)
    answer = await call(path, request)
    assert answer.status == 200, answer.text[:300]
    if request.get("stream"):
        events = {frame.event for frame in frames_of(answer)}
        assert events <= {quoted(cells[0])[0] for cells in rows(PAGE, "Streams")}
        return
    shape = {"created", "data"} if path.endswith("edits") else {"code", "msg", "data"}
    assert answer.body.keys() >= shape


async def test_an_error_has_the_documented_members(call: ApiClient) -> None:
    answer = await call("/v1/images/generations", {"model": "imgC-1", "prompt": "x", "n": 11})
    assert answer.status == 400
    assert answer.body.keys() == {"code", "msg", "error"}
    assert answer.body["error"].keys() == {"message", "type", "param", "code"}
