"""Encoding of a conversation as the items of a responses request to a provider (`input`)."""

from collections.abc import Iterator, Sequence
from typing import assert_never

from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.chat.provider_tool_names import provider_id, tool_names
from umg_grpc.wire.core.agent_prompt_lines import cut_first_turn, without_client_lines
from umg_grpc.wire.core.json_decoding import JsonObject, json_text
from umg_grpc.wire.core.prompt_cache_breakpoints import (
    can_end_prefix,
    limit_breakpoints,
    marks_instructions,
    with_breakpoint,
)
from umg_grpc.wire.core.tool_name_conversion import OpenCalls
from umg_grpc.wire.core.unknown_role_messages import omits_turn
from umg_grpc.wire.dropped_fields_report import NOTHING_LEFT, Report, foreign, no_role, unknown_part, untranslatable
from umg_grpc.wire.responses.content_parts import (
    BETWEEN_TEXTS,
    IMAGE_DETAILS,
    compact_output,
    encode_annotations,
    encode_part,
)
from umg_grpc.wire.responses.decode_messages import (
    COMPACTION_TRIGGER,
    OWN_PREFIX,
    ROLE_NAMES,
    image_item,
    reasoning_item,
)
from umg_grpc.wire.responses.typed_client_tools import CLIENT_TOOLS, call_item, output_item

NO_RESULT = "No result."
Placed = tuple[pb.Part, str]  # a part and its canonical path


def is_message_part(part: pb.Part) -> bool:
    """Return whether a part is encoded within an item of type `message`: a text or a refusal."""
    return part.HasField("text") or part.HasField("refusal")


def encode_instructions(request: pb.GenerateRequest, report: Report, quirks: Quirks = NO_QUIRKS) -> str:
    """Return the system prompt, "" without one. Raise UmgError(UNTRANSLATABLE) for a part that is no text."""
    texts = list[str]()
    if marks_instructions(request, quirks):
        return ""  # an item of `input`
    for index, part in enumerate(request.instructions):
        if part.HasField("cache_control"):
            report.drop("cache_control")
        if not part.HasField("text"):
            raise untranslatable(f"instructions[{index}]", "instructions are text in responses")
        texts.append(part.text.text)
    return without_client_lines(BETWEEN_TEXTS.join(texts), quirks, report)


class InputEncoder:
    """Encoder of the messages of one canonical request as the items of `input`, in order."""

    def __init__(self, request: pb.GenerateRequest, report: Report, quirks: Quirks = NO_QUIRKS) -> None:
        self._request = request
        self._report = report
        self._quirks = quirks
        self._has_marks = marks_instructions(request, quirks)  # set later for a mark of a message
        self._detail = request.media_detail if request.media_detail in IMAGE_DETAILS else ""
        self._items: list[object] = []
        self._generated_ids = 0  # number of generated ids
        self._reasoning_items: list[object] = []  # reasoning whose item is still to come: a provider rejects it alone
        # Whether the turn's reasoning was left out: the ids of its items would require it.
        self._reasoning_dropped = False
        self._unanswered = OpenCalls()
        self._names = tool_names(request)
        self._called: dict[str, bool] = {}  # ids of calls -> whether they are calls of custom tools
        self._typed: dict[str, str] = {}  # ids of calls of tools with a type of their own -> that type
        self._placeholder_results: list[JsonObject] = []  # results for calls without one
        # A provider that stores the earlier turns reports open calls itself, as it does to gRPC callers.
        continued = request.previous_response_id or request.conversation_id or request.HasField("prompt_template")
        self._completes_pairs = request.HasField("source") and not continued
        self._results = {
            part.tool_result.call_id
            for message in request.messages
            for part in message.parts
            if part.HasField("tool_result")
        }

    def encode(self) -> list[object]:
        """Return `input`. Raise UmgError(UNTRANSLATABLE, INVALID_FIELD) for content that must not be lost."""
        if self._has_marks:
            self._items.append(self._marked_instructions())
        for index, message in enumerate(self._request.messages):
            self._message(message, f"messages[{index}]", index)
        self._end_turn()
        if self._request.HasField("compaction") and not self._request.compaction.standalone:
            self._items.append({"type": COMPACTION_TRIGGER})
        if self._has_marks:
            contents = [item.get("content") for item in self._items if isinstance(item, dict)]
            limit_breakpoints(contents, self._quirks, self._report)
        cut_first_turn(self._items, self._quirks, self._report)
        if not self._items and self._completes_pairs:
            raise untranslatable("messages", NOTHING_LEFT)
        return self._items

    def _marked_instructions(self) -> JsonObject:
        """Return the system prompt as an item, since the member `instructions` cannot contain cache breakpoints."""
        content, parts = list[object](), self._request.instructions
        for index, part in enumerate(parts):
            if not part.HasField("text"):
                raise untranslatable(f"instructions[{index}]", "instructions are text in responses")
            text = part.text.text
            text = text if index else without_client_lines(text, self._quirks, self._report)
            if text:
                joined = text + BETWEEN_TEXTS if index < len(parts) - 1 else text
                content.append(self._marked({"type": "input_text", "text": joined}, part))
        return {"type": "message", "role": "developer", "content": content}

    def _takes_mark(self, message: pb.Message, part: pb.Part) -> bool:
        if self._quirks.breakpoints is None or not can_end_prefix(message, part, self._quirks):
            self._report.drop("cache_control")
            return False
        self._has_marks = True
        return True

    def _marked_input(self, part: pb.Part, at: str) -> object:
        return self._marked(self._input(part, at), part)

    def _marked(self, encoded: object, part: pb.Part) -> object:
        return with_breakpoint(encoded, part, self._quirks, self._report)

    def _message(self, message: pb.Message, at: str, index: int) -> None:
        if omits_turn(message, "responses", self._report):
            return
        if message.name:
            self._report.drop("name")
        rest, marked = list[Placed](), False
        for position, part in enumerate(message.parts):
            path = f"{at}.parts[{position}]"
            if part.HasField("cache_control"):
                marked = self._takes_mark(message, part) or marked
            if part.HasField("tool_result"):
                self._end_turn(results=True)
                self._result(part.tool_result, path)
            else:
                rest.append((part, path))
        if not rest and message.parts:
            return
        if message.role == pb.ROLE_ASSISTANT:
            self._assistant(message, rest, index)
            return
        self._end_turn()
        if message.role == pb.ROLE_UNSPECIFIED and len(rest) == 1 and rest[0][0].HasField("opaque"):
            part, path = rest[0]
            self._items.append(encode_part(part, path, self._report))
            return
        role = ROLE_NAMES.get(message.role)
        if role is None:
            if message.role == pb.ROLE_TOOL:
                raise untranslatable(at, "only a user or system turn can hold this")
            raise no_role(at)
        encode = self._marked_input if marked else self._input
        content = [encode(part, path) for part, path in rest if self._is_encodable(part)]
        self._items.append({"type": "message", "role": role, "content": content})

    def _is_encodable(self, part: pb.Part) -> bool:
        kind = part.WhichOneof("kind")
        if kind in ("server_tool_call", "server_tool_result", "reasoning") or part.thought:
            self._report.drop("thought" if part.thought else kind or "")
            return False
        return True

    def _input(self, part: pb.Part, at: str) -> object:
        if part.HasField("state"):
            self._report.drop("state")
        return encode_part(part, at, self._report, self._detail)

    def _end_turn(self, *, results: bool = False) -> None:
        """End the model's turn before another role: drop reasoning that no item follows and, unless `results` follow,
        add an empty result for each unanswered call, since providers require it.
        """
        if self._placeholder_results and not results:
            self._report.drop("tool_call", "without a result")
            self._items += self._placeholder_results
            self._placeholder_results = []
        if self._reasoning_items:
            self._report.drop("reasoning")
            self._reasoning_items = []
        self._reasoning_dropped = False

    def _own_id(self, prefix: str, given: str) -> str:
        if given.startswith(prefix) and not self._reasoning_dropped:
            return given
        self._generated_ids += 1
        return f"{prefix}{OWN_PREFIX}{self._generated_ids}"

    def _assistant(self, message: pb.Message, rest: Sequence[Placed], index: int) -> None:
        run, run_id, phase = list[Placed](), "", ""
        for position, (part, at) in enumerate(rest):
            if is_message_part(part):
                item_id = part.message_id or message.message_id
                if run and item_id != run_id:
                    self._add_message_item(run, run_id, phase)
                    run = []
                run.append((part, at))
                run_id, phase = item_id, part.phase or message.phase
                continue
            if run:
                self._add_message_item(run, run_id, phase)
                run = []
            if part.HasField("reasoning"):
                self._reasoning(part)
            else:
                self._add_item(self._item(part, at, f"call_{index}_{position}"))
            if part.HasField("state") and not part.HasField("reasoning"):
                self._report.drop("state")
        if run:
            self._add_message_item(run, run_id, phase)

    def _add_item(self, item: object) -> None:
        if item is not None:
            self._items += [*self._reasoning_items, item]
            self._reasoning_items = []

    def _add_message_item(self, run: list[Placed], message_id: str, phase: str) -> None:
        content = list[JsonObject]()
        for part, _ in run:
            if part.HasField("state"):
                self._report.drop("state")
            if part.HasField("refusal"):
                content.append({"type": "refusal", "refusal": part.refusal.text})
                continue
            annotations = encode_annotations(part.text)
            if len(annotations) < len(part.text.citations):
                self._report.drop("citations")
            content.append({"type": "output_text", "text": part.text.text, "annotations": annotations})
        item: JsonObject = {
            "type": "message",
            "id": self._own_id("msg_", message_id),
            "status": "completed",
            "role": "assistant",
            "content": content,
        }
        if phase:
            item["phase"] = phase
        self._add_item(item)

    def _reasoning(self, part: pb.Part) -> None:
        """Keep reasoning of this format's providers for the item after it; leave out and report other reasoning."""
        if part.state.format != "responses":
            self._report.drop("reasoning")
            if part.HasField("state"):
                self._report.drop("state")
            self._reasoning_dropped = True
            return
        item = reasoning_item(part, self._own_id("rs_", part.reasoning.item_id), shown=False)
        self._reasoning_items.append(item | {"encrypted_content": part.state.data})

    def _item(self, part: pb.Part, at: str, own_id: str) -> object:
        match part.WhichOneof("kind"):
            case "tool_call":
                return self._call(part.tool_call, own_id)
            case "media" if part.media.kind == pb.MEDIA_KIND_IMAGE and part.media.media_id.startswith("ig_"):
                return image_item(part.media, part.media.media_id)
            case "media":
                if part.thought:
                    self._report.drop("thought")
                    return None
                raise untranslatable(at, "an assistant turn of responses cannot hold it")
            case "server_tool_call" if part.server_tool_call.name == "web_search":
                return self._search(part.server_tool_call)
            case "opaque" if part.opaque.format == "responses":
                return json_text(part.opaque.json, f"{at}.opaque.json")
            case "opaque":
                raise foreign(part.opaque, at)
            case "compaction" | None:
                raise unknown_part(at)
            case "server_tool_result" if part.server_tool_result.name == "web_search":
                return None  # its pages are in the call, or were reported with it
            case ("text" | "refusal" | "reasoning" | "tool_result" | "server_tool_call" | "server_tool_result") as kind:
                self._report.drop(kind)
                return None
            case unhandled:
                assert_never(unhandled)

    def _search(self, call: pb.ServerToolCall) -> object:
        """Return a web search that a provider of this format ran as an item; report any other, and return None."""
        if call.format != "responses" or not call.call_id.startswith("ws_"):
            self._report.drop("server_tool_call")
            return None
        action = json_text(call.input_json, "input_json")
        return {"type": "web_search_call", "id": call.call_id, "status": call.status or "completed", "action": action}

    def _call(self, call: pb.ToolCall, own_id: str) -> JsonObject:
        call_id = provider_id(call.call_id) or own_id
        if not call.call_id:
            self._unanswered.add(call.name, call_id)
        if call.tool_type in CLIENT_TOOLS:
            self._typed[call_id] = call.tool_type
            item_id = self._own_id(CLIENT_TOOLS[call.tool_type].prefix, call.item_id)
            return call_item(item_id, call_id, "completed", call, call.arguments_json)
        custom = self._called[call_id] = call.HasField("text")
        item: JsonObject = {
            "type": "custom_tool_call" if custom else "function_call",
            "call_id": call_id,
            "name": call.name if call.namespace else self._names.of_call(call),
        }
        if call.namespace:
            item["namespace"] = call.namespace
        if call.item_id.startswith("ctc_" if custom else "fc_") and not self._reasoning_dropped:
            item["id"] = call.item_id
        item["input" if custom else "arguments"] = call.text if custom else call.arguments_json or "{}"
        if self._completes_pairs and call.call_id and call.call_id not in self._results:
            kind = "custom_tool_call_output" if custom else "function_call_output"
            self._placeholder_results.append({"type": kind, "call_id": call_id, "output": NO_RESULT})
        return item

    def _result(self, result: pb.ToolResult, at: str) -> None:
        """Add a tool result: as an item, or as a user message if clients have cut off its call."""
        call_id = provider_id(result.call_id) or self._unanswered_id(result.name)
        if call_id in self._typed:
            self._items.append(output_item(call_id, self._typed[call_id], result))
            return
        if self._completes_pairs and call_id not in self._called:
            self._report.drop("tool_result", "text")
            content = list(self._result_parts(result, at))
            if not content:
                content.append({"type": "input_text", "text": result.result_json or NO_RESULT})
            self._items.append({"type": "message", "role": "user", "content": content})
            return
        if result.is_error:
            self._report.drop("is_error")
        custom = self._called.get(call_id, result.custom)
        item: JsonObject = {
            "type": "custom_tool_call_output" if custom else "function_call_output",
            "call_id": call_id,
            "output": compact_output(list(self._result_parts(result, at)), result),
        }
        if result.item_id.startswith(("fc_", "fco_", "ctc_", "ctco_")) and not self._reasoning_dropped:
            item["id"] = result.item_id
        self._items.append(item)

    def _result_parts(self, result: pb.ToolResult, at: str) -> Iterator[object]:
        for index, part in enumerate(result.parts):
            path = f"{at}.tool_result.parts[{index}]"
            if part.HasField("media") and part.media.kind == pb.MEDIA_KIND_AUDIO:
                raise untranslatable(path, "a tool result of responses cannot hold sound")
            if self._is_encodable(part):
                yield self._input(part, path)

    def _unanswered_id(self, name: str) -> str:
        return self._unanswered.answered(name) or f"call_{name or 'unknown'}"
