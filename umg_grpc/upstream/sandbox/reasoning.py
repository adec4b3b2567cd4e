"""Thinking before the answer, and the state that proves it."""

import base64
import binascii
import hmac
from dataclasses import dataclass
from hashlib import blake2b

from umg_grpc.upstream.sandbox import faults
from umg_grpc.upstream.sandbox.limits import shortened
from umg_grpc.upstream.sandbox.prompt import Count, Prompt, first_words
from umg_grpc.upstream.sandbox.words import Words, digest
from umg_grpc.v1 import pb
from umg_grpc.wire.json import invalid
from umg_grpc.wire.report import Report

KEY = b"umg sandbox"  # no secret: it tells our states from those of others
SIGNED_FORMATS = ("messages", "native", "responses", "chat")
# Vendor G takes these for calls that another model made (reference, 6.4).
PLACEHOLDERS = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
ENCRYPTED = "reasoning.encrypted_content"

SENTENCES = {"minimal": 1, "low": 2, "medium": 3, "high": 5, "xhigh": 7, "max": 7}
LARGE_BUDGET = 8192


@dataclass(frozen=True)
class Thinking:
    """How to think."""

    sentences: int
    budget: int | None
    """Most tokens; None without a limit of its own."""
    shown: bool
    """Whether there is a reasoning part at all."""
    texts: bool
    """Whether that part has the thoughts themselves."""
    summaries: int


def thinking(request: pb.GenerateRequest, prompt: Prompt) -> Thinking | None:
    """How to think, None for not at all: the sandbox thinks only where something in `reasoning` asks for it.

    Not shown: what an absent `include_thoughts` means. Native, and chat in native's words, show thoughts only when it
    is true (reference, 6.4; readings, 10), the other formats whenever there are some. Responses shows summaries, and
    those only when they are asked for.
    """
    asked = request.reasoning
    if not _wanted(asked, bool(prompt.results)):
        return None
    sentences = SENTENCES.get(asked.effort or asked.level, 3)
    budget = asked.budget_tokens if asked.budget_tokens > 0 else None
    if budget is not None and not asked.effort:
        sentences = SENTENCES["high"] if budget >= LARGE_BUDGET else SENTENCES["medium"]
    source, fields = request.source.format, request.source.family_fields
    native = source == "native" or any("thinking_config" in path or "thinkingConfig" in path for path in fields)
    shown = asked.include_thoughts if asked.HasField("include_thoughts") else not native
    summaries = {"auto": 1, "concise": 1, "detailed": 2}.get(asked.summary, 0)
    texts = source != "responses" and asked.display != "omitted"
    return Thinking(sentences, budget, shown, texts, summaries)


def _wanted(asked: pb.ReasoningOptions, after_tools: bool) -> bool:
    if asked.mode == pb.REASONING_MODE_DISABLED or asked.effort == "none":
        return False
    if asked.HasField("budget_tokens"):
        return asked.budget_tokens != 0
    if asked.mode == pb.REASONING_MODE_BETWEEN_TOOLS:
        return after_tools
    asked_for = asked.mode or asked.effort or asked.level or asked.include_thoughts
    return bool(asked_for) or asked.summary not in ("", "none")


def think(how: Thinking, prompt: Prompt, words: Words, most: int, count: Count) -> str:
    """The thoughts, in at most `most` tokens and within their budget."""
    subject = first_words(prompt.question or prompt.system) or "nothing"
    topics = ", ".join(words.topics(4))
    sentences = [
        f"Simulated thoughts of the sandbox. The user asks: {subject}",
        f"\nWhat matters here: {topics}.",
        "\nThe tools gave: " + "; ".join(first_words(result.text) for result in prompt.results)
        if prompt.results
        else "\nNo tool has given anything yet.",
        f"\nThere were {prompt.turns} turns and {len(prompt.sights)} files to look at.",
        "\nA plain answer that repeats what was asked will do.",
        "\nNothing in it may look like the words of a real model.",
        "\nSo the answer says first that it is simulated.",
    ]
    limit = most if how.budget is None else min(most, how.budget)
    return shortened("".join(sentences[: how.sentences]), limit, count)


def reasoning_part(how: Thinking, text: str, request: pb.GenerateRequest, prompt: Prompt) -> pb.Part:
    """The thoughts as the caller sees them, with their state."""
    part = pb.Part(reasoning=pb.ReasoningPart(redacted=faults.redacted(prompt.last_turn)))
    if not part.reasoning.redacted:
        if how.texts and text:
            part.reasoning.texts.append(text)
        head, _, rest = text.partition("\n")
        summaries = [f"**Reading the question**\n\n{head}", f"**Finding the answer**\n\n{rest or head}"]
        part.reasoning.summaries.extend(summaries[: how.summaries])
    if request.source.format != "responses" or ENCRYPTED in request.include:
        part.state.CopyFrom(signed(text, request.source.format))
    return part


def signed(text: str, source_format: str) -> pb.ReasoningState:
    """The state that belongs to a text, in the words of the caller's format; of messages where that is not known."""
    seed = digest(text)
    return pb.ReasoningState(
        data=base64.b64encode(seed + _seal(seed)).decode(),
        format=source_format if source_format in SIGNED_FORMATS else "messages",
    )


def check_states(request: pb.GenerateRequest, report: Report) -> None:
    """Raises UmgError(INVALID_FIELD) for a state that the sandbox never made and for one whose thoughts were changed. A
    state of an unknown format is left out. A tool turn without its thinking block is taken, which real providers of the
    messages format refuse: towards them the codec makes such a conversation legal, and the sandbox has none.
    """
    for index, message in enumerate(request.messages):
        for position, part in enumerate(message.parts):
            if not part.HasField("state"):
                continue
            field = f"messages[{index}].parts[{position}].state"
            if part.state.format not in SIGNED_FORMATS:
                report.drop("state")
            elif (seed := _opened(part.state)) is None:
                raise invalid(field, "the model never made this reasoning state; return it unchanged, or leave it out")
            elif part.state.format == "messages" and (text := "".join(part.reasoning.texts)) and seed != digest(text):
                raise invalid(field, "the thoughts are not those that were signed; return them unchanged")


def _seal(seed: bytes) -> bytes:
    return blake2b(seed, key=KEY, digest_size=16).digest()


def _opened(state: pb.ReasoningState) -> bytes | None:
    """What the state was made from, None for one of another maker; b"" for a placeholder."""
    plain = state.data.translate(str.maketrans("-_", "+/")).rstrip("=")
    try:
        decoded = binascii.a2b_base64(plain + "=" * (-len(plain) % 4), strict_mode=True)
    except ValueError:
        decoded = b""
    if state.format == "native" and (state.data in PLACEHOLDERS or decoded in [name.encode() for name in PLACEHOLDERS]):
        return b""
    seed, seal = decoded[:16], decoded[16:]
    return seed if len(seed) == 16 and hmac.compare_digest(seal, _seal(seed)) else None
