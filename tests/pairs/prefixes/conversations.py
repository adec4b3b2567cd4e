"""Conversations that grow by a turn with each request, as callers of each face write them."""

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.pairs.vendors.features import PNG

Json = dict[str, Any]
ARGUMENTS = '{"path":  "a b.txt", "share": 1.0, "names": ["é", "\\u00e9"],\n "deep": {"z": 1, "a": null}}'
"""Arguments of a call with spaces, numbers, escapes and an order that no writer of JSON would choose."""
SCHEMA: Json = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "share": {"type": "number", "minimum": 0.0}, "deep": {"type": "object"}},
    "required": ["path"],
}
TOOLS = ("read_file", "zip", "a.long/name with spaces", "b")
SIGNATURE = base64.b64encode(b"a signature of the provider").decode()


@dataclass(frozen=True)
class Step:
    """Output of the model, and the turns that its caller sends back before the next request."""

    id: str
    text: str | None = None
    reasoning: str = ""
    signed: bool = False
    """Whether the reasoning has the state of the face's own provider."""
    calls: int = 0
    result: str = "read"
    failed: bool = False
    shown: bool = False
    """Whether the first result has a picture."""
    texts: tuple[str, ...] = ()
    """Texts of the user behind the results."""
    picture: bool = False
    """Whether the user sends a picture, too."""
    instructions: str = ""
    """Instructions behind the user's turn."""


STEPS = (
    Step("a text", text="I will look.", texts=("Go on.",)),
    Step("a call", calls=1),
    Step("a text and a call", text="Now the next.", calls=1),
    Step("parallel calls", calls=3),
    Step("parallel calls with a text of the user", calls=2, texts=("And be quick.",)),
    Step("signed reasoning and a text", text="So it is.", reasoning="Hm.\n\nYes.", signed=True, texts=("Go on.",)),
    Step("signed reasoning and a call", reasoning="Hm.", signed=True, calls=1),
    Step("signed reasoning and parallel calls", text="Both.", reasoning="Hm.", signed=True, calls=2),
    Step("reasoning without a signature", text="So it is.", reasoning="Hm.", texts=("Go on.",)),
    Step("reasoning without a signature and a call", reasoning="Hm.", calls=1),
    Step("an error", calls=1, result="no such file", failed=True),
    Step("an empty result", calls=1, result=""),
    Step("a picture in a result", calls=2, shown=True),
    Step("a picture of the user", text="Show me.", texts=("This:", "Like it?"), picture=True),
    Step("an empty text of the user", text="Hm.", texts=("", "Go on.")),
    Step("an empty text of the model", text="", calls=1),
    Step("white space of the model", text="So it is. \n", texts=(" Go on. ",)),
    Step("instructions behind results", calls=1, instructions="Remember the style."),
    Step("instructions behind a text", text="Yes?", texts=("Go on.",), instructions="Be brief."),
)
"""Each kind of turn. A conversation of them all is one case, and tests draw others from them."""


@dataclass(frozen=True)
class Numbered:
    """Step at its place in a conversation, by which the ids of its calls are unique."""

    number: int
    step: Step

    def calls(self) -> Iterator[tuple[str, str]]:
        """Yield the id and the tool of each call."""
        for index in range(self.step.calls):
            yield f"call_{self.number}x{index}", TOOLS[(self.number + index) % len(TOOLS)]


Write = Callable[[Numbered], list[Json]]


def chat(numbered: Numbered) -> list[Json]:
    step = numbered.step
    calls = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": ARGUMENTS}}
        for call_id, name in numbered.calls()
    ]
    answer: Json = {"role": "assistant", "content": step.text}
    if step.reasoning:
        answer["reasoning_content"] = step.reasoning
    if step.reasoning and step.signed and calls:
        calls[0]["extra_content"] = {"google": {"thought_signature": SIGNATURE}}
    if calls:
        answer["tool_calls"] = calls
    written = [answer]
    written += [{"role": "tool", "tool_call_id": call["id"], "content": step.result} for call in calls]
    if step.shown:
        image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
        written[1]["content"] = [{"type": "text", "text": "shown"}, image]
    if step.picture:
        parts: list[Json] = [{"type": "text", "text": text} for text in step.texts]
        parts.insert(1, {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}})
        written.append({"role": "user", "content": parts})
    else:
        written += [{"role": "user", "content": text} for text in step.texts]
    if step.instructions:
        written.append({"role": "system", "content": step.instructions})
    return written


def responses(numbered: Numbered) -> list[Json]:
    step, written = numbered.step, list[Json]()
    if step.reasoning:
        item: Json = {"type": "reasoning", "summary": [{"type": "summary_text", "text": step.reasoning}]}
        if step.signed:
            item["encrypted_content"] = SIGNATURE
        written.append(item)
    if step.text is not None:
        content = [{"type": "output_text", "text": step.text, "annotations": []}]
        written.append({"type": "message", "role": "assistant", "content": content})
    calls = list(numbered.calls())
    written += [
        {"type": "function_call", "call_id": call_id, "name": name, "arguments": ARGUMENTS} for call_id, name in calls
    ]
    outputs: list[Json] = [
        {"type": "function_call_output", "call_id": call_id, "output": step.result} for call_id, _ in calls
    ]
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}
    if step.shown:
        outputs[0]["output"] = [{"type": "input_text", "text": "shown"}, image]
    written += outputs
    parts: list[Json] = [{"type": "input_text", "text": text} for text in step.texts]
    if step.picture:
        parts.insert(1, image)
    if parts:
        written.append({"type": "message", "role": "user", "content": parts})
    if step.instructions:
        written.append({"type": "message", "role": "developer", "content": step.instructions})
    return written


def messages(numbered: Numbered) -> list[Json]:
    step, answer = numbered.step, list[Json]()
    if step.reasoning:
        answer.append({"type": "thinking", "thinking": step.reasoning, "signature": SIGNATURE if step.signed else ""})
    if step.text is not None:
        answer.append({"type": "text", "text": step.text})
    calls = list(numbered.calls())
    answer += [
        {"type": "tool_use", "id": call_id, "name": name, "input": json.loads(ARGUMENTS)} for call_id, name in calls
    ]
    user: list[Json] = [
        {"type": "tool_result", "tool_use_id": call_id, "content": step.result, "is_error": step.failed}
        for call_id, _ in calls
    ]
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    if step.shown:
        user[0]["content"] = [{"type": "text", "text": "shown"}, image]
    texts: list[Json] = [{"type": "text", "text": text} for text in step.texts]
    if step.picture:
        texts.insert(1, image)
    written: list[Json] = [{"role": "assistant", "content": answer}, {"role": "user", "content": user + texts}]
    if step.instructions:
        written.append({"role": "system", "content": step.instructions})
    return written


def native(numbered: Numbered) -> list[Json]:
    step, answer = numbered.step, list[Json]()
    if step.reasoning:
        answer.append({"text": step.reasoning, "thought": True})
    if step.text is not None:
        answer.append({"text": step.text})
    calls = list(numbered.calls())
    answer += [
        {"functionCall": {"id": call_id, "name": name, "args": json.loads(ARGUMENTS)}} for call_id, name in calls
    ]
    if step.signed:
        place = next((part for part in answer if "functionCall" in part), answer[-1])
        place["thoughtSignature"] = SIGNATURE
    member = "error" if step.failed else "output"
    user: list[Json] = [
        {"functionResponse": {"id": call_id, "name": name, "response": {member: step.result}}}
        for call_id, name in calls
    ]
    image = {"inlineData": {"mimeType": "image/png", "data": PNG}}
    if step.shown:
        user.append(image)
    texts: list[Json] = [{"text": text} for text in step.texts]
    if step.picture:
        texts.insert(1, image)
    return [{"role": "model", "parts": answer}, {"role": "user", "parts": user + texts}]


WRITERS: dict[str, Write] = {"chat": chat, "responses": responses, "messages": messages, "native": native}
"""Face -> function that writes a step as elements of its conversation."""
TURNS = {"chat": "messages", "responses": "input", "messages": "messages", "native": "contents"}
"""Format -> member of its body with the conversation."""


def growing(face: str, begun: Json, steps: Sequence[Step]) -> Iterator[Json]:
    """Yield the bodies of consecutive requests of one conversation: `begun`, and that with one step more at a time."""
    turns = list(begun[TURNS[face]])
    yield begun
    for number, step in enumerate(steps):
        turns = [*turns, *WRITERS[face](Numbered(number, step))]
        yield begun | {TURNS[face]: turns}
