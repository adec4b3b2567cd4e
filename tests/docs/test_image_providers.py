"""Page docs/image-providers.md: the config samples are valid, and the tables are those of the codecs."""

import re

import pytest

from tests.docs.tables import DOCS, quoted, rows
from tests.support.providers.images.image_file_texts import png
from umg_grpc.base.errors import UmgError
from umg_grpc.config import parse
from umg_grpc.knowledge.families.image_model_rules import FAMILY_FIELDS, IMAGE_MODELS
from umg_grpc.upstream.http.image_generation import MAX_CONCURRENT_CALLS
from umg_grpc.upstream.http.image_task_polling import MAX_FAILED_QUERIES
from umg_grpc.upstream.http.image_url_inlining import MAX_CONCURRENT, MAX_TOTAL_BYTES
from umg_grpc.upstream.http1.response import MAX_RESPONSE_BYTES
from umg_grpc.upstream.response_memory_budget import FREE_BYTES, MAX_BYTES
from umg_grpc.v1 import pb
from umg_grpc.wire.images.providers import IMAGE_PROTOCOLS

PAGE = (DOCS / "image-providers.md").read_text(encoding="utf-8")
FLAT = " ".join(PAGE.split())
SAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
DATA = pb.ImageInput(data=png("an input"))
VALUES: dict[str, object] = {
    "aspect_ratio": "16:9",
    "background": "opaque",
    "guidance_scale": 3.0,
    "image_size": "2K",
    "input_fidelity": "high",
    "mask": DATA,
    "max_output_tokens": 1000,
    "max_sequential_images": 2,
    "moderation": "low",
    "negative_prompt": "text",
    "optimize_prompt_mode": "standard",
    "output_compression_percent": 80,
    "output_mime_type": "image/jpeg",
    "partial_images": 2,
    "person_generation": "allow_all",
    "prompt_extend": True,
    "quality": "high",
    "response_modalities": "image-text",
    "seed": 7,
    "sequential_image_generation": pb.SEQUENTIAL_IMAGE_GENERATION_AUTO,
    "size": "1024x1024",
    "temperature": 1.0,
    "top_p": 0.5,
    "user": "u-1",
    "watermark": True,
}
"""Field -> a value with an effect."""


def measured(field: str, protocol: str) -> str:
    """Return how a protocol handles a field in the words of the page."""
    fields: dict[str, object] = {"model": "m", "prompt": "a", field: VALUES[field]}
    if field in ("mask", "input_fidelity"):
        fields |= {"operation": pb.IMAGE_OPERATION_EDIT, "inputs": [DATA]}
    if field == "max_sequential_images":
        fields["sequential_image_generation"] = pb.SEQUENTIAL_IMAGE_GENERATION_AUTO
    codec = IMAGE_PROTOCOLS[protocol]
    try:
        request = pb.GenerateImageRequest(**fields)  # type: ignore[arg-type]
        dropped = codec.encode_request(request, "m", codec.stream_decoder is not None).report.dropped
    except UmgError as error:
        return "refused" if error.reason == pb.ERROR_REASON_UNTRANSLATABLE else error.message
    if field == "partial_images" and protocol not in ("images", "umg_images"):
        return "no effect"
    return "left out" if field in dropped else "sent"


def table() -> list[list[str]]:
    return [[f"`{field}`", *(measured(field, protocol) for protocol in IMAGE_PROTOCOLS)] for field in sorted(VALUES)]


def test_the_fields_are_those_of_the_families() -> None:
    assert set(VALUES) - {"user"} == set(FAMILY_FIELDS) - {"n"}


def test_the_table_of_fields_is_measured() -> None:
    assert rows(PAGE, "Fields") == table()


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda text: re.findall(r"protocols: \[(\w+)\]", text)[0])
def test_a_config_sample_is_valid(sample: str) -> None:
    names = re.findall(r"\$\{(\w+)\}", sample)
    config = parse(sample, "sample.yaml", dict.fromkeys(names, "sk-sample"))
    assert {model.id for channel in config.channels for model in channel.models} <= IMAGE_MODELS.keys()


def test_every_protocol_has_a_row_and_a_sample() -> None:
    documented = [quoted(cells[0])[0] for cells in rows(PAGE, "Protocols")]
    assert documented == list(IMAGE_PROTOCOLS)
    assert sorted(re.findall(r"protocols: \[(\w+)\]", PAGE)) == sorted(IMAGE_PROTOCOLS)


def test_the_table_of_protocols_is_that_of_the_codecs() -> None:
    request = pb.GenerateImageRequest(prompt="a", inputs=[pb.ImageInput(url="https://files.example/1.png")])
    for cells in rows(PAGE, "Protocols"):
        codec = IMAGE_PROTOCOLS[quoted(cells[0])[0]]
        assert cells[2].startswith("addresses") == codec.takes_urls(request), codec.name
        assert cells[3].startswith("one call for each") == codec.one_image, codec.name
        assert (cells[4] == "none") == (codec.stream_decoder is None), codec.name


def test_the_limits_are_those_of_the_code() -> None:
    fetched = re.search(
        r"(\d+) files at a time, at most (\d+) MiB each for `images` and (\d+) MiB .*?, (\d+) MiB", FLAT
    )
    assert fetched is not None
    assert [int(number) for number in fetched.groups()] == [
        MAX_CONCURRENT,
        IMAGE_PROTOCOLS["images"].max_file_bytes >> 20,
        IMAGE_PROTOCOLS["native_images"].max_file_bytes >> 20,
        MAX_TOTAL_BYTES >> 20,
    ]
    assert f"one call for each, {MAX_CONCURRENT_CALLS} at a time" in FLAT
    tasks = IMAGE_PROTOCOLS["dashscope_images"].tasks
    assert tasks is not None
    assert f"every {tasks.poll_seconds:g} s" in FLAT
    assert f"repeated {MAX_FAILED_QUERIES} times" in FLAT
    assert f"more than {MAX_RESPONSE_BYTES >> 20} MiB" in FLAT
    assert f"above {FREE_BYTES >> 10} KiB" in FLAT
    assert f"at most {MAX_BYTES >> 20} MiB" in FLAT
