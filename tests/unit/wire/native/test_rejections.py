"""Bodies that the face refuses, and the path in each error."""

import msgspec
import pytest

from tests.unit.wire.rejections import Rejection, check_rejection
from umg_grpc.v1 import pb
from umg_grpc.wire.native import NATIVE_FORMAT

MISSING = pb.ERROR_REASON_MISSING_FIELD


def part(value: object) -> dict[str, object]:
    return {"contents": [{"parts": [{"text": "a"}]}, {"role": "user", "parts": [{"text": "a"}, value]}]}


def config(**fields: object) -> dict[str, object]:
    return {"generationConfig": fields}


PART = "contents[1].parts[1]"
CONFIG = "generationConfig"
DECLARED = "tools[0].functionDeclarations[0]"
REJECTIONS = [
    Rejection("no contents", "contents", {"contents": msgspec.UNSET}, MISSING, message="`contents` is required"),
    Rejection("null as contents", "contents", {"contents": None}, MISSING),
    Rejection("contents of another type", "contents", {"contents": 3}, message="expected an array"),
    Rejection("parts of another type", "contents[0].parts", {"contents": [{"parts": 3}]}),
    Rejection("a text of another type", f"{PART}.text", part({"text": 3}), message="expected a string"),
    Rejection("an empty part", PART, part({}), message="the part is empty"),
    Rejection("a part by the codec's name of unknown ones", PART, part({"(opaque)": "x"}), message="the part is empty"),
    Rejection("a part with only a thought", PART, part({"thought": True})),
    Rejection("a part that is two things", PART, part({"text": "a", "functionCall": {"name": "f"}}), message="text and function_call"),
    Rejection("a blob without data", f"{PART}.inlineData.data", part({"inlineData": {"mimeType": "image/png"}}), MISSING),
    Rejection("an empty blob", f"{PART}.inlineData.data", part({"inlineData": {"mimeType": "image/png", "data": ""}})),
    Rejection("broken base64", f"{PART}.inlineData.data", part({"inlineData": {"mimeType": "image/png", "data": "@"}})),
    Rejection("a blob of no type", f"{PART}.inlineData.mimeType", part({"inlineData": {"data": "aGk="}}), MISSING),
    Rejection("broken base64 in snake_case", f"{PART}.inline_data.data", part({"inline_data": {"mime_type": "image/png", "data": "@"}})),
    Rejection("a file without an address", f"{PART}.fileData.fileUri", part({"fileData": {"mimeType": "image/png"}}), MISSING),
    Rejection("a call without a name", f"{PART}.functionCall.name", part({"functionCall": {"args": {}}}), MISSING),
    Rejection("arguments that are no object", f"{PART}.functionCall.args", part({"functionCall": {"name": "f", "args": [1]}})),
    Rejection("a result without a name", f"{PART}.functionResponse.name", part({"functionResponse": {"response": {}}}), MISSING),
    Rejection("a result that is no object", f"{PART}.functionResponse.response", part({"functionResponse": {"name": "f", "response": "x"}})),
    Rejection("a part of a result that is text", f"{PART}.functionResponse.parts[0]", part({"functionResponse": {"name": "f", "response": {}, "parts": [{"text": "a"}]}})),
    Rejection("code that is no object", f"{PART}.executableCode", part({"executableCode": 3})),
    Rejection("an unknown resolution", f"{PART}.mediaResolution.level", part({"text": "a", "mediaResolution": {"level": "SHARP"}})),
    Rejection("temperature below", f"{CONFIG}.temperature", config(temperature=-0.1), message="at least 0"),
    Rejection("temperature above", f"{CONFIG}.temperature", config(temperature=2.1), message="at most 2"),
    Rejection("temperature above, as text", f"{CONFIG}.temperature", config(temperature="2.1")),
    Rejection("temperature that is no number", f"{CONFIG}.temperature", config(temperature="warm"), message="a number"),
    Rejection("temperature in snake_case", "generation_config.temperature", {"generation_config": {"temperature": 3}}),
    Rejection("topP in snake_case", f"{CONFIG}.top_p", config(top_p=1.1)),
    Rejection("half a token", f"{CONFIG}.maxOutputTokens", config(maxOutputTokens=1.5), message="whole number"),
    Rejection("an empty stop sequence", f"{CONFIG}.stopSequences[1]", config(stopSequences=["a", ""])),
    Rejection("no candidate", f"{CONFIG}.candidateCount", config(candidateCount=0)),
    Rejection("a seed past 64 bits", f"{CONFIG}.seed", config(seed=2**64)),
    Rejection("a penalty above", f"{CONFIG}.presencePenalty", config(presencePenalty=2.1)),
    Rejection("too many alternatives", f"{CONFIG}.logprobs", config(logprobs=21)),
    Rejection("a schema that is no object", f"{CONFIG}.responseSchema", config(responseSchema=[1])),
    Rejection("a JSON schema that is no object", f"{CONFIG}.responseJsonSchema", config(responseJsonSchema="x")),
    Rejection("an unknown level", f"{CONFIG}.thinkingConfig.thinkingLevel", config(thinkingConfig={"thinkingLevel": "DEEP"}), message="`HIGH`"),
    Rejection("a function without a name", f"{DECLARED}.name", {"tools": [{"functionDeclarations": [{"description": "d"}]}]}, MISSING),
    Rejection("a function without a name in snake_case", "tools[0].function_declarations[0].name", {"tools": [{"function_declarations": [{}]}]}, MISSING),
    Rejection("an unknown mode", "toolConfig.functionCallingConfig.mode", {"toolConfig": {"functionCallingConfig": {"mode": "MUST"}}}, message="`VALIDATED`"),
    Rejection("no threshold", "safetySettings[0].threshold", {"safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT"}]}, MISSING),
    Rejection("a label that is no text", "labels", {"labels": {"a": 3}}),
    Rejection("65 labels", "labels", {"labels": dict.fromkeys(map(str, range(65)), "a")}),
]  # fmt: skip


@pytest.mark.parametrize("case", REJECTIONS, ids=lambda case: case.id)
def test_a_malformed_body_is_rejected_by_the_path_of_its_field(case: Rejection) -> None:
    check_rejection(NATIVE_FORMAT.decode_request, {"contents": [{"parts": [{"text": "a"}]}]}, case)


PATHS = {
    "request.temperature": "generationConfig.temperature",
    "messages": "contents",
    "messages[2].parts": "contents[2].parts",
    "messages[2].parts[1].text.text": "contents[2].parts[1].text",
    "messages[2].parts[1].media.source": "contents[2].parts[1].inlineData",
    "messages[2].parts[1].media.uri": "contents[2].parts[1].fileData.fileUri",
    "messages[2].parts[1].tool_call.arguments_json": "contents[2].parts[1].functionCall.args",
    "messages[2].parts[1].tool_result.parts[0].text.text": "contents[2].parts[1].functionResponse",
    "messages[2].parts[1].tool_result.result_json": "contents[2].parts[1].functionResponse.response",
    "messages[2].parts[1].state.data": "contents[2].parts[1].thoughtSignature",
    "messages[2].parts[1].opaque.json": "contents[2].parts[1]",
    "instructions[1].text.text": "systemInstruction.parts[1].text",
    "tools[3].function.parameters_json": "tools[3].functionDeclarations",
    "tools[3].web_search.max_uses": "tools[3]",
    "tool_choice.mode": "toolConfig.functionCallingConfig.mode",
    "tool_choice.names": "toolConfig.functionCallingConfig.allowedFunctionNames",
    "top_p": "generationConfig.topP",
    "top_logprobs": "generationConfig.logprobs",
    "logprobs": "generationConfig.responseLogprobs",
    "max_output_tokens": "generationConfig.maxOutputTokens",
    "reasoning.budget_tokens": "generationConfig.thinkingConfig.thinkingBudget",
    "reasoning.level": "generationConfig.thinkingConfig.thinkingLevel",
    "response_format.json_schema.schema_json": "generationConfig.responseSchema",
    "image_output.mime_type": "generationConfig.imageConfig.imageOutputOptions.mimeType",
    "cached_content": "cachedContent",
    "contents[0].parts": "contents[0].parts",
}


@pytest.mark.parametrize(("canonical", "wire"), PATHS.items())
def test_a_canonical_path_is_converted_to_the_callers_path(canonical: str, wire: str) -> None:
    assert NATIVE_FORMAT.wire_path(canonical) == wire
