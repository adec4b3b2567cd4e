"""Simulated reasoning before responses, with the signed opaque data (reasoning state) by which callers send it back."""

import base64
import binascii
import hmac
from dataclasses import dataclass
from hashlib import blake2b

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import invalid
from umg_grpc.wire.dropped_fields_report import Report
from umg_sandbox import simulated_faults
from umg_sandbox.output_truncation import truncate
from umg_sandbox.prompt_reader import Count, Prompt, first_words
from umg_sandbox.words_from_prompt import Words, digest

STATE_KEY = b"umg sandbox"  # not secret: it distinguishes the sandbox's states from those of other providers
SIGNED_FORMATS = ("messages", "native", "responses", "chat")
# Vendor G accepts these for tool calls of another model (reference, 6.4).
STATE_PLACEHOLDERS = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
ENCRYPTED_INCLUDE = "reasoning.encrypted_content"

EFFORT_SENTENCES = {"minimal": 1, "low": 2, "medium": 3, "high": 5, "xhigh": 7, "max": 7}
LARGE_BUDGET = 8192


@dataclass(frozen=True)
class ReasoningPlan:
    """Amount of reasoning for one response, and the form in which the response contains it."""

    sentences: int
    budget: int | None
    """Maximum tokens of the reasoning that the request states; None if it states none."""
    shown: bool
    """Whether the response has a reasoning part."""
    texts: bool
    """Whether the reasoning part contains the reasoning text itself."""
    summaries: int


def reasoning_plan(request: pb.GenerateRequest, prompt: Prompt) -> ReasoningPlan | None:
    """Return the amount and form of reasoning; None unless a field of `reasoning` requests it. The specification does
    not define an absent `include_thoughts`: in the native format, and in chat with fields of the native format, the
    response has reasoning only if it is true; in the other formats always, in responses as summaries on request.
    """
    options = request.reasoning
    if not _is_requested(options, bool(prompt.results)):
        return None
    sentences = EFFORT_SENTENCES.get(options.effort or options.level, 3)
    budget = options.budget_tokens if options.budget_tokens > 0 else None
    if budget is not None and not options.effort:
        sentences = EFFORT_SENTENCES["high"] if budget >= LARGE_BUDGET else EFFORT_SENTENCES["medium"]
    source, fields = request.source.format, prompt.family_fields
    native = source == "native" or any("thinking_config" in path or "thinkingConfig" in path for path in fields)
    shown = options.include_thoughts if options.HasField("include_thoughts") else not native
    summaries = {"auto": 1, "concise": 1, "detailed": 2}.get(options.summary, 0)
    texts = source != "responses" and options.display != "omitted"
    return ReasoningPlan(sentences, budget, shown, texts, summaries)


def _is_requested(options: pb.ReasoningOptions, after_tools: bool) -> bool:
    if options.mode == pb.REASONING_MODE_DISABLED or options.effort == "none":
        return False
    if options.HasField("budget_tokens"):
        return options.budget_tokens != 0
    if options.mode == pb.REASONING_MODE_BETWEEN_TOOLS:
        return after_tools
    requested = options.mode or options.effort or options.level or options.include_thoughts
    return bool(requested) or options.summary not in ("", "none")


def reasoning_text(plan: ReasoningPlan, prompt: Prompt, words: Words, max_tokens: int, count: Count) -> str:
    """Return simulated reasoning with at most `max_tokens` tokens and within the plan's budget."""
    subject = first_words(prompt.question or prompt.system) or "nothing"
    topics = ", ".join(words.topics(4))
    sentences = [
        f"Simulated thoughts of the sandbox. The user asks: {subject}",
        f"\nWhat matters here: {topics}.",
        "\nThe tools gave: " + "; ".join(first_words(result.text) for result in prompt.results)
        if prompt.results
        else "\nNo tool has given anything yet.",
        f"\nThere were {prompt.turns} turns and {len(prompt.media_descriptions)} files to look at.",
        "\nA plain answer that repeats what was asked will do.",
        "\nNothing in it may look like the words of a real model.",
        "\nSo the answer says first that it is simulated.",
    ]
    limit = max_tokens if plan.budget is None else min(max_tokens, plan.budget)
    return truncate("".join(sentences[: plan.sentences]), limit, count)


def reasoning_part(plan: ReasoningPlan, text: str, request: pb.GenerateRequest, prompt: Prompt) -> pb.Part:
    """Return the message part with the reasoning `text` and its signed opaque data."""
    part = pb.Part(reasoning=pb.ReasoningPart(redacted=simulated_faults.redacted(prompt.last_turn)))
    if not part.reasoning.redacted:
        if plan.texts and text:
            part.reasoning.texts.append(text)
        head, _, rest = text.partition("\n")
        summaries = [f"**Reading the question**\n\n{head}", f"**Finding the answer**\n\n{rest or head}"]
        part.reasoning.summaries.extend(summaries[: plan.summaries])
    if request.source.format != "responses" or ENCRYPTED_INCLUDE in request.include:
        part.state.CopyFrom(signed(text, request.source.format))
    return part


def signed(text: str, source_format: str) -> pb.ReasoningState:
    """Return the opaque data that belongs to a reasoning text, with a signature by which changes are noticed.
    `source_format`: format of the caller. For a format without this data it is that of the messages format.
    """
    seed = digest(text)
    return pb.ReasoningState(
        data=base64.b64encode(seed + _seal(seed)).decode(),
        format=source_format if source_format in SIGNED_FORMATS else "messages",
    )


def check_states(request: pb.GenerateRequest, report: Report) -> None:
    """Check the opaque data of reasoning that the caller sent back. Raise UmgError(INVALID_FIELD) for changed data of
    the sandbox; data of an unknown format is recorded as dropped. A tool result without the reasoning before its call
    is accepted, although real providers of the messages format reject it: their codec repairs the conversation, and the
    sandbox has none.
    """
    for index, message in enumerate(request.messages):
        for position, part in enumerate(message.parts):
            if not part.HasField("state"):
                continue
            field = f"messages[{index}].parts[{position}].state"
            if part.state.format not in SIGNED_FORMATS:
                report.drop("state")
            elif (seed := _seed_of(part.state)) is None:
                raise invalid(field, "the model never made this reasoning state; return it unchanged, or leave it out")
            elif part.state.format == "messages" and (text := "".join(part.reasoning.texts)) and seed != digest(text):
                raise invalid(field, "the thoughts are not those that were signed; return them unchanged")


def _seal(seed: bytes) -> bytes:
    return blake2b(seed, key=STATE_KEY, digest_size=16).digest()


def _seed_of(state: pb.ReasoningState) -> bytes | None:
    """Return the seed in reasoning data of the sandbox; b"" for an SDK's placeholder, None for other data."""
    plain = state.data.translate(str.maketrans("-_", "+/")).rstrip("=")
    try:
        decoded = binascii.a2b_base64(plain + "=" * (-len(plain) % 4), strict_mode=True)
    except ValueError:
        decoded = b""
    if state.format == "native" and (
        state.data in STATE_PLACEHOLDERS or decoded in [name.encode() for name in STATE_PLACEHOLDERS]
    ):
        return b""
    seed, seal = decoded[:16], decoded[16:]
    return seed if len(seed) == 16 and hmac.compare_digest(seal, _seal(seed)) else None
