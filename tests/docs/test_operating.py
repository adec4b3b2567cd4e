"""Operators' page: the gateway behaves as it states on providers, families and the sandbox."""

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields
from typing import Any, get_args

import pytest
from aiohttp import ClientSession

from http_facade.exchange.caller_credentials import key_headers, key_parameter
from http_facade.routes import ROUTE_TABLE
from tests.docs.tables import DOCS, quoted, rows, section
from tests.support.callers.api import ApiClient
from tests.support.polling import pause
from tests.support.processes import Served, run
from tests.support.videos import submission
from umg_grpc.base.errors import UmgError
from umg_grpc.config import BearerAuth, Channel, Config, Timeout, built_in, parse
from umg_grpc.config.channel_quirks import QuirksEntry
from umg_grpc.config.channel_section import served_protocols
from umg_grpc.config.file_schema import _File
from umg_grpc.config.model_settings import _CapabilitiesEntry, _SettingsEntry
from umg_grpc.knowledge.families.text_model_rules import CHAT_FIELDS, MODEL_OWNERS, TEXT_FAMILIES, split_suffix
from umg_grpc.knowledge.model_quirk_definitions import Quirks, SearchWithFunctions
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_UPSTREAMS
from umg_grpc.wire.embedding_formats import EMBEDDING_FORMATS, EMBEDDING_UPSTREAMS
from umg_grpc.wire.errors.http_status import HTTP_STATUS
from umg_grpc.wire.images.provider_protocol_interface import ImageProtocol
from umg_grpc.wire.images.providers import IMAGE_PROTOCOLS
from umg_grpc.wire.rerank import RERANK_FORMATS, RERANK_UPSTREAMS
from umg_grpc.wire.video import VIDEO_PROTOCOLS
from umg_sandbox import simulated_faults

PAGE = (DOCS / "operating.md").read_text(encoding="utf-8")

pytestmark = pytest.mark.asyncio(loop_scope="module")


MARKS = {quoted(cells[0])[0]: int(cells[2]) for cells in rows(PAGE, "The simulated provider")}


def chat(model: str, text: str = "Hi", **more: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": text}], **more}


def image_paths(protocol: ImageProtocol) -> Iterator[str]:
    """Yield the paths of a generation, and of an edit and a variation where the protocol has them."""
    inputs = [pb.ImageInput(data=b"\x89PNG\r\n\x1a\n")]
    for operation in (pb.IMAGE_OPERATION_GENERATE, pb.IMAGE_OPERATION_EDIT, pb.IMAGE_OPERATION_VARIATION):
        edits = operation != pb.IMAGE_OPERATION_GENERATE
        request = pb.GenerateImageRequest(operation=operation, prompt="Hi", inputs=inputs if edits else [])
        with suppress(UmgError):
            yield protocol.encode_request(request, "{id}", False).path


async def test_the_table_of_protocols_has_the_paths_and_key_headers_of_the_formats() -> None:
    documented = {quoted(cells[0])[0]: cells[1:] for cells in rows(PAGE, "Configuration")}
    text_request = pb.GenerateRequest(
        model="m", messages=[pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text={"text": "Hi"})])]
    )
    paths, headers = dict[str, list[str]](), dict[str, str]()
    for name, codec in TEXT_UPSTREAMS.items():
        headers[name] = codec.key_header
        paths[name] = [codec.encode_request(text_request, "{id}", stream).path for stream in (False, True)]
    for face, unary in (EMBEDDING_FORMATS | RERANK_FORMATS).items():
        headers[unary.protocol] = unary.key_header
        request = unary.decode_request(json.dumps(BODIES[face]).encode(), {}).canonical
        paths.setdefault(unary.protocol, []).append(unary.encode_request(request, "{id}").path)
    vectors, ranking = (
        pb.EmbedRequest(inputs=[{"text": "Hi"}]),
        pb.RerankRequest(query="Hi", documents=[{"text": "Hi"}]),
    )
    for name in ("vertex_embeddings", "bedrock_embeddings"):
        codec = EMBEDDING_UPSTREAMS[name]
        headers[name], paths[name] = codec.key_header, [codec.encode_request(vectors, "{id}").path]
    paths["vertex_embeddings"].append(
        EMBEDDING_UPSTREAMS["vertex_embeddings"].encode_request(vectors, "gemini-embedding-2").path
    )
    invoked = RERANK_UPSTREAMS["bedrock_rerank"]
    headers[invoked.name], paths[invoked.name] = invoked.key_header, [invoked.encode_request(ranking, "{id}").path]
    for name, images in IMAGE_PROTOCOLS.items():
        headers[name], paths[name] = images.key_header, list(image_paths(images))
    for name, protocol in VIDEO_PROTOCOLS.items():
        headers[name], video = protocol.key_header, submission("{id}")
        paths[name] = [protocol.encode_create(video).path.partition("?")[0]]
    paths["vidE"].append(
        VIDEO_PROTOCOLS["vidE"].encode_create(submission("kling-3.0")).path.replace("kling-3.0", "{id}")
    )
    paths["vidG"].append(VIDEO_PROTOCOLS["vidG"].encode_create(submission("T2V-01")).path)
    assert documented.keys() == paths.keys()
    for name, cells in documented.items():
        found = [path.replace("%7B", "{").replace("%7D", "}") for path in paths[name]]
        assert quoted(cells[0]) == list(dict.fromkeys(found)), name
        bearer = ": Bearer" if headers[name] == "authorization" else ""
        assert quoted(cells[1]) == [headers[name] + bearer], name


async def test_the_examples_of_usage_run_unchanged(served: Served, call: ApiClient) -> None:
    [block] = re.findall(r"```bash\n(.*?)```", section(PAGE, "Usage and requests"), re.DOTALL)
    commands = [line.partition("#")[0].split() for line in block.splitlines()]
    [request_id] = [words[-1] for words in commands if words[1:3] == ["requests", "show"]]
    headers = {**served.headers, "x-request-id": request_id}
    assert (await call.send("POST", "/v1/chat/completions", chat("famO-5"), headers=headers)).status == 200
    async with asyncio.timeout(120), ClientSession(headers=served.headers) as session:
        while (await session.get(f"{served.url}/admin/v1/requests/{request_id}")).status != 200:
            await pause()  # written behind the call
    environment = {"UMG_GATEWAY": served.url, "UMG_ADMIN_KEY": served.key}
    for words, (code, out, err) in zip(
        commands, await asyncio.gather(*(run(*words[1:], environment=environment) for words in commands)), strict=True
    ):
        assert (words[0], code, err) == ("umg", 0, ""), words
        assert out, words


BODIES = {
    "embeddings": {"model": "m", "input": "Hi"},
    "native_embedding": {"content": {"parts": [{"text": "Hi"}]}},
    "native_embeddings": {"requests": [{"content": {"parts": [{"text": "Hi"}]}}]},
    "rerank": {"model": "m", "query": "Hi", "documents": ["Ho"]},
    "rerank_v2": {"model": "m", "query": "Hi", "documents": ["Ho"]},
}


async def test_the_example_config_is_valid_and_has_the_defaults() -> None:
    [example] = re.findall(r"```yaml\n(.*?)```", section(PAGE, "Configuration"), re.DOTALL)
    read = parse(example, "/etc/umg.yaml", {"UMG_SECRET": "0123456789abcdef", "PROVIDER_KEY": "k"})
    usual = Config(channels=())
    for key in _File.__struct_fields__:
        if key not in {"channels", "models", "public_url", "secret"}:
            assert getattr(read, key) == getattr(usual, key), key
    main, _, local, sandbox = read.channels
    assert (main.priority, main.weight, main.timeout, main.auth) == (0, 1, Timeout(), BearerAuth())
    assert [model.id for model in local.models] == [model.id for model in built_in().channels[0].models]
    assert (sandbox.pace, main.shared_objects) == (type(sandbox).pace, False)
    assert {protocol for channel in read.channels for protocol in channel.protocols} <= set(served_protocols())


async def test_every_key_of_a_model_is_in_the_tables() -> None:
    documented = [key for cells in rows(PAGE, "Models") for key in quoted(cells[0])]
    assert sorted(documented) == sorted([*_SettingsEntry.__struct_fields__, *_CapabilitiesEntry.__struct_fields__])
    units = {name.removeprefix("BILLABLE_UNIT_").lower() for name, value in pb.BillableUnit.items() if value}
    assert units - set(quoted(section(PAGE, "Models"))) == set()


async def test_every_configurable_quirk_is_in_its_table() -> None:
    documented = [key for cells in rows(PAGE, "Restrictions of real providers") for key in quoted(cells[0])]
    assert sorted(documented) == sorted(QuirksEntry.__struct_fields__)
    assert set(QuirksEntry.__struct_fields__) <= {field.name for field in fields(Quirks)}
    choices = set(
        quoted(next(cells[1] for cells in rows(PAGE, "Restrictions of real providers") if "search_with" in cells[0]))
    )
    assert set(get_args(SearchWithFunctions)) <= choices
    for caching in get_args(Channel.__annotations__["prompt_caching"]):
        assert f"`prompt_caching: {caching}`" in " ".join(section(PAGE, "Restrictions of real providers").split())


async def test_the_batch_sizes_are_those_of_the_page() -> None:
    documented = re.search(
        r"`embeddings` takes (\d+) at once, `native_embeddings` (\d+), `vertex_embeddings` (\d+), `bedrock_embeddings` (\d+)",
        " ".join(section(PAGE, "Configuration").split()),
    )
    assert documented is not None
    assert {int(size) for size in documented.groups()} == {codec.max_items for codec in EMBEDDING_UPSTREAMS.values()}


async def test_a_length_that_a_model_cannot_have_and_an_operation_are_refused(call: ApiClient) -> None:
    for model, dimensions, status in (
        ("wordllama-256", 128, 200),
        ("wordllama-256", 100, 400),
        ("text-embedding-3-small", 100, 200),
        ("text-embedding-ada-002", 100, 400),
        ("famO-5", 100, 400),
    ):
        body = {"model": model, "input": "Hi", "dimensions": dimensions}
        assert (await call("/v1/embeddings", body)).status == status, model
    assert (await call("/v1/chat/completions", chat("wordllama-rerank"))).status == 400


async def test_every_header_and_parameter_for_a_callers_key_is_documented() -> None:
    faces = {route.format for route in ROUTE_TABLE if route.format}
    places = {header for face in faces for header in key_headers(face)}
    places |= {f"?{key_parameter(face)}=" for face in faces if key_parameter(face)} | {"Authorization: Bearer KEY"}
    assert {"x-api-key", "?key="} <= places
    assert places - set(quoted(section(PAGE, "Keys"))) == set()


async def test_the_families_own_the_fields_of_the_table() -> None:
    documented = {quoted(cells[0])[0]: set(quoted(cells[1])) for cells in rows(PAGE, "Families")}
    takes = {family for family, words in CHAT_FIELDS.items() if words.thinking == "thinking"}
    owned: dict[str, set[str]] = {family: {"thinking"} if family in takes else set() for family in TEXT_FAMILIES}
    for field, family in MODEL_OWNERS.items():
        if f"extra_body.{field}" not in MODEL_OWNERS:  # else it is the same, merged into the body
            owned[family].add(field)
    assert documented == owned


@pytest.mark.parametrize(
    "field", [cell for cells in rows(PAGE, "Families") for cell in quoted(cells[1]) if "." not in cell]
)
async def test_a_field_of_one_family_is_refused_by_models_of_another(field: str, call: ApiClient) -> None:
    values = {
        "generationConfig": {"thinkingConfig": {"thinkingBudget": 100}},
        "thinking": {"type": "enabled"},
        "enable_thinking": True,
        "parameters": {},
        "search_parameters": {},
    }
    reply = await call("/v1/chat/completions", chat("famO-5", **{field: values[field]}))
    assert reply.status == 400
    assert reply.body["error"]["param"].startswith(field)


async def test_the_documented_suffixes_are_those_of_the_code(call: ApiClient) -> None:
    documented = [word for word in quoted(section(PAGE, "Families")) if word.startswith("-")]
    assert len({split[1].form for word in documented if (split := split_suffix(f"famG-2.5-flash{word}"))}) == 5
    for word in documented:
        levels = "-thinking-1024" not in word
        for model, status in (("famG-2.5-flash", 200), ("famG-3-pro", 200 if levels else 400), ("famO-5", 404)):
            assert (await call("/v1/chat/completions", chat(model + word))).status == status, model + word


@pytest.mark.parametrize("mark", [mark for mark in MARKS if mark != "[[slow]]"])  # that one takes a minute
async def test_a_mark_of_the_sandbox_has_the_status_of_the_table(mark: str, call: ApiClient) -> None:
    reply = await call("/v1/chat/completions", chat("famO-5", f"Hi {mark}"))
    assert (reply.status, reply.headers.get("retry-after")) == (MARKS[mark], "1" if mark == "[[fail:429]]" else None)


@pytest.mark.parametrize("mark", ["[[fail]]", "[[fail:mid]]", "[[fail:429]]"])
async def test_a_fault_mark_has_an_effect_in_a_text_to_embed_and_in_a_query(mark: str, call: ApiClient) -> None:
    texts = {"model": "text-embedding-3-small", "input": ["Hi", f"Hi {mark}"]}
    assert (await call("/v1/embeddings", texts)).status == MARKS[mark]
    query = {"model": "rerank-v1", "query": mark, "documents": ["Hi"]}
    assert (await call("/v1/rerank", query)).status == MARKS[mark]


async def test_the_table_has_every_mark() -> None:
    known = [
        simulated_faults.FAIL_MARK,
        simulated_faults.CUT_MARK,
        simulated_faults.BUSY_MARK,
        simulated_faults.SLOW_MARK,
        simulated_faults.REFUSE_MARK,
        simulated_faults.BLOCK_MARK,
        simulated_faults.REDACTED_MARK,
    ]
    assert list(MARKS) == [f"[[{name}]]" for name in known]
    assert MARKS["[[slow]]"] == HTTP_STATUS[simulated_faults.late("total", callers=False).reason]


async def test_the_page_names_the_simulated_models_of_the_built_in_config() -> None:
    [sandbox] = [channel for channel in built_in().channels if "sandbox" in channel.protocols]
    [listed] = re.findall(
        r"built-in config serves (.*?)\.\s+A channel", section(PAGE, "The simulated provider"), re.DOTALL
    )
    assert re.split(r",\s+|\s+and\s+", listed) == [model.id for model in sandbox.models]


async def test_dropped_fields_are_in_the_header_and_refused_by_strict_calls(call: ApiClient) -> None:
    body = chat("smollm2-135m-instruct", max_tokens=5, top_k=3, speed="fast")
    reply = await call("/v1/messages", body)
    assert (reply.status, reply.headers["x-umg-dropped"]) == (200, "speed, top_k")
    assert "`top_k, reasoning.effort=budget_tokens 24576, eager_input_streaming x9`" in section(
        PAGE, "Fields that a provider does not support"
    )
    assert (await call("/v1/messages", body, **{"x-umg-strict": "true"})).status == 400
    refused = await call("/v1/messages", chat("famO-5", max_tokens=5, new_field=1))
    assert (refused.status, "`new_field`" in refused.text) == (400, True)


async def test_a_response_is_stored_unless_the_call_disables_it(served: Served, call: ApiClient) -> None:
    for path, body, found in (
        ("/v1/responses", {"model": "famO-5", "input": "Hi"}, 200),
        ("/v1/responses", {"model": "famO-5", "input": "Hi", "store": False}, 404),
        ("/v1/chat/completions", chat("famO-5"), 404),
        ("/v1/chat/completions", chat("famO-5", store=True), 200),
    ):
        made = (await call(path, body)).body
        assert (await call(f"/v1/responses/{made['id']}")).status == found, body
    assert (await call("/v1/responses", {"model": "famO-5", "input": "Hi", "background": True})).status == 400


async def test_the_log_has_the_documented_fields(served: Served, call: ApiClient) -> None:
    await call("/v1/chat/completions", chat("famX-4"))
    line = json.loads(await served.until_logged('"model":"famX-4"'))
    assert line.keys() >= {
        "method",
        "face",
        "model",
        "channel",
        "key",
        "outcome",
        "ms",
        "input_tokens",
        "output_tokens",
    }
