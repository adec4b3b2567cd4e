"""Formats of the response, and functions with `strict`, towards providers whose models accept some JSON schemas only:
translated, and in bodies of the provider's own format.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from anthropic import transform_schema

from tests.pairs.quirks.requests import encoded
from tests.pairs.table import every_face
from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks, SchemaDialect
from umg_grpc.wire.core.structured_output_ways import ANY_JSON

Json = Any
OPEN = {"type": "object", "properties": {"a": {"type": "string", "minLength": 2}}, "required": ["a"]}
CLOSED = {"type": "object", "properties": {"a": {"type": "string", "description": "Constraints: at least 2 characters."}}, "required": ["a"], "additionalProperties": False}  # fmt: skip
PLAIN = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
OPTIONAL = {"type": "object", "properties": {"a": {"type": "string"}}}
NULLABLE = {"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}, "required": ["a"], "additionalProperties": False}  # fmt: skip
MAP = {"type": "object", "additionalProperties": {"type": "string"}}
CONST = {"type": "object", "properties": {"a": {"const": "x"}}}
ENUM = {"type": "object", "properties": {"a": {"enum": ["x"]}}}
LINES = "Answer with JSON that is valid for this JSON schema, and nothing else: no words around it, no code fence.\n"
DIALECTS: dict[str, SchemaDialect] = {"messages": "claude", "native": "gemini", "chat": "openai", "responses": "openai"}


def required(face: str, schema: Json, *, strict: bool | None = None) -> dict[str, Json]:
    """Members of a body of the face that require a response by the schema; any JSON if it is None."""
    stated = {} if strict is None else {"strict": strict}
    if face == "messages":
        return {"output_config": {"effort": "low", "format": {"type": "json_schema", "schema": schema}}}
    if face == "native":
        config = {"responseMimeType": "application/json"}
        return {"generationConfig": config | ({"responseJsonSchema": schema} if schema is not None else {})}
    if face == "responses":
        named = {"type": "json_schema", "name": "n", "schema": schema, **stated}
        return {"text": {"verbosity": "low", "format": {"type": "json_object"} if schema is None else named}}
    if schema is None:
        return {"response_format": {"type": "json_object"}}
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema, **stated}}}


def sent_schema(upstream: str, body: Json) -> Json:
    """The schema of the response in a body for the provider."""
    match upstream:
        case "messages":
            return body.get("output_config", {}).get("format", {}).get("schema")
        case "native":
            return body["generationConfig"].get("responseJsonSchema")
        case "responses":
            return body["text"]["format"].get("schema")
        case _:
            return body["response_format"].get("json_schema", {}).get("schema")


FACES = ("chat", "responses", "native")


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("quirks", [NO_QUIRKS, Quirks(schema_dialect="claude")], ids=["unknown", "claude"])
def test_a_messages_provider_gets_a_schema_of_the_only_vendor(face: str, quirks: Quirks) -> None:
    body, dropped = encoded(face, "messages", quirks, **required(face, OPEN))
    assert sent_schema("messages", body) == CLOSED
    assert "minLength" in dropped
    assert transform_schema(CLOSED) == CLOSED


@pytest.mark.parametrize("face", FACES)
def test_a_schema_that_claude_cannot_express_is_an_instruction(face: str) -> None:
    body, dropped = encoded(face, "messages", NO_QUIRKS, **required(face, MAP))
    assert body["system"].startswith(LINES)
    assert json.loads(body["system"].removeprefix(LINES)) == MAP
    assert "output_config" not in body
    assert "=instructions" in dropped


def test_the_instruction_is_at_the_end_of_the_system_prompt() -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    body, _ = encoded("chat", "messages", NO_QUIRKS, messages=messages, **required("chat", MAP))
    assert [block["text"].split("\n")[0] for block in body["system"]] == ["Be brief.", LINES[:-1]]


@dataclass(frozen=True)
class Case:
    id: str
    upstream: str
    dialect: SchemaDialect
    schema: Json
    expected: Json
    """Schema that the provider gets."""
    strict: bool | None
    dropped: str = ""


CASES = [
    Case("OpenAI, strict", "chat", "openai", OPTIONAL, NULLABLE, True, "required"),
    Case("OpenAI, strict, responses", "responses", "openai", OPTIONAL, NULLABLE, True, "required"),
    Case("OpenAI, not strict", "chat", "openai", OPTIONAL, OPTIONAL, False),
    Case("OpenAI, a map", "responses", "openai", MAP, MAP, True, "strict=false"),
    Case("Gemini", "native", "gemini", CONST, ENUM, None),
    Case("Moonshot", "chat", "moonshot", {"$schema": "x", **OPEN}, OPEN, None),
    Case("Moonshot, strict", "chat", "moonshot", {"$schema": "x", **OPEN}, OPEN, True),
]  # fmt: skip


@pytest.mark.parametrize("face", ["chat", "responses"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_translated_schema_is_in_the_dialect_of_the_provider(case: Case, face: str) -> None:
    quirks = Quirks(schema_dialect=case.dialect)
    body, dropped = encoded(face, case.upstream, quirks, **required(face, case.schema, strict=case.strict))
    assert sent_schema(case.upstream, body) == case.expected
    assert case.dropped in dropped
    if case.dropped == "strict=false":
        assert body["text"]["format"]["strict"] is False


OBJECT_ONLY: list[tuple[str, SchemaDialect]] = [
    ("chat", "json_object"), ("chat", "none"), ("responses", "json_object"), ("responses", "none"),
    ("messages", "json_object"), ("native", "json_object"), ("native", "none"),
]  # fmt: skip


def prompt(body: Json) -> list[str]:
    """The texts before the user's question."""
    if "system" in body:
        return [body["system"]] if isinstance(body["system"], str) else [block["text"] for block in body["system"]]
    if "systemInstruction" in body:
        return [part["text"] for part in body["systemInstruction"]["parts"]]
    first = body["messages"][0] if "messages" in body else body["input"][0]
    content = first["content"]
    assert first["role"] in {"system", "developer"}
    return [content] if isinstance(content, str) else [part["text"] for part in content]


@every_face
@pytest.mark.parametrize(("upstream", "dialect"), OBJECT_ONLY)
def test_a_schema_is_an_instruction_for_providers_without_schemas(
    face: str, upstream: str, dialect: SchemaDialect
) -> None:
    body, dropped = encoded(face, upstream, Quirks(schema_dialect=dialect), **required(face, PLAIN))
    text = "\n".join(prompt(body))
    assert text.startswith(LINES)
    assert json.loads(text.removeprefix(LINES)) == PLAIN
    kept = json.dumps({name: value for name, value in body.items() if name not in {"messages", "input", "system", "systemInstruction"}})  # fmt: skip
    enforced = dialect == "json_object" and upstream != "messages"
    assert ("json_schema" in kept or "JsonSchema" in kept) is False
    assert ("json_object" in kept or "application/json" in kept) is enforced
    assert ("=json_object" in dropped) or ("=instructions" in dropped)


@pytest.mark.parametrize("face", ["chat", "responses", "native"])
def test_any_json_is_an_instruction_for_providers_without_formats(face: str) -> None:
    for upstream in ("chat", "responses", "native"):
        body, dropped = encoded(face, upstream, Quirks(schema_dialect="none"), **required(face, None))
        assert prompt(body) == [ANY_JSON]
        assert dropped.endswith("=instructions")


@pytest.mark.parametrize("upstream", ["chat", "responses"])
def test_the_word_json_is_in_the_messages_of_a_request_for_any_json(upstream: str) -> None:
    body, dropped = encoded("native", upstream, NO_QUIRKS, **required("native", None))
    assert (prompt(body), dropped) == (["Answer in JSON."], "")
    naming = {"contents": [{"role": "user", "parts": [{"text": "Answer in Json."}]}]}
    body, _ = encoded("native", upstream, NO_QUIRKS, **required("native", None) | naming)
    assert len(body["messages" if upstream == "chat" else "input"]) == 1


# --- bodies of the provider's own format


def own(face: str, quirks: Quirks, **fields: Json) -> tuple[Json, str]:
    """The body for a provider of the face with the quirks, less the members of every body, and the report."""
    body, dropped = encoded(face, face, quirks, **fields)
    plain, _ = encoded(face, face, NO_QUIRKS)
    return {name: value for name, value in body.items() if plain.get(name) != value}, dropped


@pytest.mark.parametrize("face", ["chat", "responses", "messages"])
def test_a_callers_own_schema_is_changed_for_a_dialect_and_reported(face: str) -> None:
    quirks = Quirks(schema_dialect=DIALECTS[face])
    strict = None if face == "messages" else True
    body, dropped = own(face, quirks, **required(face, OPTIONAL, strict=strict))
    fitted = NULLABLE if face != "messages" else OPTIONAL | {"additionalProperties": False}
    assert body == required(face, fitted, strict=strict)
    assert dropped == {
        "chat": "response_format.json_schema.schema.required",
        "responses": "text.format.schema.required",
        "messages": "output_config.format.schema=rewritten",
    }[face]  # fmt: skip


@every_face
@pytest.mark.parametrize("quirks", [NO_QUIRKS, Quirks(max_output_tokens=10)], ids=["none", "others"])
def test_a_callers_own_schema_stays_for_providers_of_unknown_dialect(face: str, quirks: Quirks) -> None:
    body, _ = own(face, quirks, **required(face, MAP))
    changed = {name: value for name, value in body.items() if name != "max_tokens"}
    assert changed == required(face, MAP)


@every_face
def test_a_callers_own_schema_that_fits_stays_byte_for_byte(face: str) -> None:
    fields = required(face, PLAIN, strict=True)
    assert encoded(face, face, Quirks(schema_dialect=DIALECTS[face]), **fields) == encoded(
        face, face, NO_QUIRKS, **fields
    )


def test_a_callers_own_map_becomes_an_instruction_for_claude() -> None:
    for system, expected in (("Be brief.", str), ([{"type": "text", "text": "Be brief."}], list)):
        body, dropped = own("messages", Quirks(schema_dialect="claude"), system=system, **required("messages", MAP))
        assert body["output_config"] == {"effort": "low"}
        assert isinstance(body["system"], expected)
        assert "\n".join(prompt(body)).startswith("Be brief.")
        assert json.dumps(MAP) in "\n".join(prompt(body))
        assert dropped == "output_config.format=instructions"


def test_a_callers_own_map_is_not_strict_at_openai() -> None:
    body, dropped = own("chat", Quirks(schema_dialect="openai"), **required("chat", MAP, strict=True))
    assert body == required("chat", MAP, strict=False)
    assert dropped == "response_format.json_schema.strict=false"


@pytest.mark.parametrize("face", ["chat", "responses"])
def test_a_callers_own_schema_is_json_object_at_deepseek(face: str) -> None:
    body, dropped = own(face, Quirks(schema_dialect="json_object"), **required(face, PLAIN))
    form = body.pop("response_format") if face == "chat" else body["text"]["format"]
    assert form == {"type": "json_object"}
    assert json.dumps(PLAIN) in prompt(body)[0]
    assert dropped.endswith("=json_object")


@pytest.mark.parametrize("face", ["chat", "responses"])
def test_the_word_json_is_added_to_a_callers_own_body_where_it_is_required(face: str) -> None:
    quirks = Quirks(json_word=True)
    body, dropped = own(face, quirks, **required(face, None))
    assert prompt(body) == ["Answer in JSON."]
    assert dropped.endswith("=with an instruction")
    name = "messages" if face == "chat" else "input"
    naming: dict[str, Json] = {name: [{"role": "user", "content": "Answer in JSON"}]}
    assert own(face, quirks, **required(face, None), **naming)[1] == ""
    assert own(face, NO_QUIRKS, **required(face, None))[1] == ""


# --- functions


def functions(face: str, schema: Json, **more: Json) -> dict[str, Json]:
    tool: dict[str, Json]
    match face:
        case "chat":
            tool = {"type": "function", "function": {"name": "f", "parameters": schema, **more}}
        case "responses":
            tool = {"type": "function", "name": "f", "parameters": schema, **more}
        case "messages":
            tool = {"name": "f", "input_schema": schema, **more}
        case _:
            tool = {"functionDeclarations": [{"name": "f", "parametersJsonSchema": schema}]}
    return {"tools": [tool]}


def sent_function(upstream: str, body: Json) -> tuple[Json, Json]:
    """(schema, `strict`) of the function in a body for the provider."""
    tool = body["tools"][0]
    if upstream == "native":
        return tool["functionDeclarations"][0]["parametersJsonSchema"], None
    tool = tool.get("function", tool)
    return tool.get("parameters", tool.get("input_schema")), tool.get("strict")


STRICT: list[tuple[str, SchemaDialect | None, Json, Json, bool]] = [
    ("messages", None, OPEN, CLOSED, True),
    ("messages", "claude", OPEN, CLOSED, True),
    ("messages", "claude", MAP, MAP, False),
    ("chat", "openai", OPTIONAL, NULLABLE, True),
    ("responses", "openai", OPTIONAL, NULLABLE, True),
    ("responses", "openai", MAP, MAP, False),
    ("chat", None, OPTIONAL, OPTIONAL, True),
    ("chat", "moonshot", {"$schema": "x", **OPEN}, OPEN, True),
]


@pytest.mark.parametrize("face", ["chat", "responses", "messages"])
@pytest.mark.parametrize(("upstream", "dialect", "schema", "expected", "strict"), STRICT)
def test_a_strict_function_is_in_the_dialect_of_the_provider(
    face: str, upstream: str, dialect: SchemaDialect | None, schema: Json, expected: Json, strict: bool
) -> None:
    if (face, dialect) == ("messages", None):
        expected = schema if upstream == "messages" else expected  # the caller's own body
    body, dropped = encoded(face, upstream, Quirks(schema_dialect=dialect), **functions(face, schema, strict=True))
    assert sent_function(upstream, body) == (expected, strict)
    assert ("strict=false" in dropped) is not strict


@every_face
@pytest.mark.parametrize(("upstream", "dialect"), [("messages", "claude"), ("chat", "openai"), ("responses", "openai")])
def test_other_functions_have_any_schema(face: str, upstream: str, dialect: SchemaDialect) -> None:
    body, dropped = encoded(face, upstream, Quirks(schema_dialect=dialect), **functions(face, OPEN))
    assert (sent_function(upstream, body)[0], dropped) == (OPEN, "")


def test_functions_for_gemini_have_no_const() -> None:
    body, dropped = encoded("chat", "native", Quirks(schema_dialect="gemini"), **functions("chat", CONST))
    assert (sent_function("native", body)[0], dropped) == (ENUM, "")


def test_a_callers_own_tools_stay_but_for_the_schemas_that_are_refused() -> None:
    hosted, odd = {"type": "web_search", "x": 1.0}, functions("responses", OPTIONAL, strict=True, x=[1.50])["tools"][0]
    group = {"type": "namespace", "name": "g", "description": "d", "tools": [odd | {"name": "h"}]}
    body, dropped = own("responses", Quirks(schema_dialect="openai"), tools=[hosted, odd, group])
    assert body["tools"] == [
        hosted,
        odd | {"parameters": NULLABLE},
        group | {"tools": [odd | {"name": "h", "parameters": NULLABLE}]},
    ]
    assert dropped == "tools.parameters.required, tools.tools.parameters.required"


# --- the schemas of real clients

REFUSED = Path(__file__).parent / "refused_schemas.json"


@pytest.mark.parametrize("case", json.loads(REFUSED.read_text()), ids=lambda case: str(case["id"]))
def test_a_schema_that_claude_refused_is_accepted_by_its_sdk(case: dict[str, Json]) -> None:
    body, dropped = encoded(case["face"], "messages", Quirks(schema_dialect="claude"), **case["fields"])
    sent = sent_schema("messages", body)
    bare = json.loads(json.dumps(sent), object_hook=lambda found: {k: v for k, v in found.items() if k != "default"})
    assert transform_schema(bare) == bare
    jsonschema.Draft202012Validator.check_schema(sent)
    assert sorted(part.rpartition(".")[2] for part in dropped.split(", ") if ".schema." in part or "Schema." in part) == case["lost"]  # fmt: skip
