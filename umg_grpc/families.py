"""The rules of model families, all of them: what a family refuses of a request, and what it makes of the rest.

The text document gives six families, by the prefixes of its example ids, fields and a thinking control that differ
from model to model. No codec knows a family: a codec notes what stood where (`SourceDocument.family_fields`), `apply`
judges it once, before the first channel is tried, and notes what it changed (`SourceDocument.edited_fields`), so that a
provider of the caller's own format is told the same as any other.

Pure: no I/O and no clock.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb

FAMILIES = ("famG", "famO", "famC", "famQ", "famR", "famX")


# --- which model it is


@dataclass(frozen=True)
class FamilyModel:
    """A model as the rules of its family see it."""

    family: str = ""
    """"" for a model without special rules, which goes for every family that the document does not name."""
    levels: bool = False
    """famG: whether thinking is set by a level (famG-3), not by a budget of tokens (famG-2.5)."""
    largest_budget: int = 32768
    """famG: most tokens to think; what shares of "the thinking budget" are taken of."""


@dataclass(frozen=True)
class Suffix:
    """What was written behind a model's id (text document, "generationConfig" and chat rule 5)."""

    form: Literal["thinking", "budget", "nothinking", "low", "high"]
    budget: int = 0
    """Of the form `budget` (`-thinking-<n>`)."""


_SUFFIX = re.compile(r"(.+)-(?:(thinking)|(nothinking)|thinking-(low|high)|thinking-([0-9]{1,18}))", re.ASCII)
_LEVEL_TIER = re.compile(r"-3(?![0-9])")


def split_suffix(model: str) -> tuple[str, Suffix] | None:
    """(base id, suffix) of an id that ends in one of the five forms, None for any other."""
    if (found := _SUFFIX.fullmatch(model)) is None:
        return None
    base, thinking, nothinking, level, budget = found.groups()
    if thinking:
        return base, Suffix("thinking")
    if nothinking:
        return base, Suffix("nothinking")
    if level:
        return base, Suffix("low" if level == "low" else "high")
    return base, Suffix("budget", int(budget))


def family_of(*ids: str) -> str:
    """The family whose documented prefix (`famG-`) one of the ids has, the first that has one; "" for none."""
    return next((family for model in ids for family in FAMILIES if model.startswith(f"{family}-")), "")


def family_model(family: str, *ids: str) -> FamilyModel:
    """The model of that family which has these ids, the public one first.

    famG-2.5 is the budget tier, famG-3 the level tier (readings, 8), told by `2.5` or `-3` in the first id that has
    one; an id of an operator's that has neither is of the budget tier. Largest budgets are not shown: those of the
    vendor's own models, 24576 for `flash` and 32768 for others.
    """
    if family != "famG":
        return FamilyModel(family)
    telling = next((model for model in ids if "2.5" in model or _LEVEL_TIER.search(model)), "2.5")
    flash = any("flash" in model.lower() for model in ids)
    return FamilyModel(family, levels="2.5" not in telling, largest_budget=24576 if flash else 32768)


# --- what the families refuse

# Chat fields that the document gives to one family (chat rules 2 and 5, and the notes of the table). On a model of
# another family they are a 400 (readings, 1); on one without a family they go to the provider as they stand.
OWNERS = {
    "enable_thinking": "famQ",
    "parameters": "famQ",
    "search_parameters": "famX",
    "extra_body.vendorg": "famG",
    "extra_body.google": "famG",
    "vendorg": "famG",
    "google": "famG",
    "generationConfig": "famG",
}

# Chat fields that famQ takes inside `parameters` and nowhere else (chat rule 2; readings, 9).
INSIDE_PARAMETERS = frozenset(
    {"incremental_output", "enable_search", "search_options", "asr_options", "temperature", "top_p"}
)


# --- what a provider of chat is told of a request that was not written for it


@dataclass(frozen=True)
class ChatWords:
    """Which of chat's words for one thing a body for a model has, where it is not the caller's own body."""

    thinking: Literal["thinking", "enable_thinking", "budget", "level", "reasoning_effort", ""] = "reasoning_effort"
    """What says whether to think; "" for either switch, as the caller named it."""
    parameters: frozenset[str] = frozenset()
    """What stands in `parameters`, by the names there. What else it could hold is not said."""
    search_parameters: bool = False
    """Whether `search_parameters` says whether to search."""
    searches_alone: bool = True
    """Whether `web_search_options` is taken without a tool of the caller's beside it."""


# The object `thinking` belongs to famR (chat rule 4; readings, 8), but the document names no family at the field. famC
# takes it too: it is that vendor's own object, and callers of other gateways send it to its models in this format.
CHAT_WORDS = {
    "famG": ChatWords(thinking="budget"),  # chat rule 5: an effort alone changes nothing
    "famO": ChatWords(),
    "famC": ChatWords(thinking="thinking", searches_alone=False),  # chat rule 6
    "famQ": ChatWords(thinking="enable_thinking", parameters=INSIDE_PARAMETERS),  # chat rules 2 and 3
    "famR": ChatWords(thinking="thinking"),  # chat rule 4
    "famX": ChatWords(search_parameters=True),
}
LEVEL_WORDS = ChatWords(thinking="level")  # of famG-3, which takes no budget
# Of a model without a family: all words, as it was said; sampling where the format itself has it.
ANY_WORDS = ChatWords(thinking="", parameters=INSIDE_PARAMETERS - {"temperature", "top_p"}, search_parameters=True)


def chat_words(model: str) -> ChatWords:
    """The words of the family that a provider's model id shows."""
    family = family_of(model)
    if family_model(family, model).levels:
        return LEVEL_WORDS
    return CHAT_WORDS.get(family, ANY_WORDS)


# --- what they make of a request


def apply(request: pb.GenerateRequest, model: FamilyModel, suffix: Suffix | None, *, stream: bool) -> None:
    """Makes of the request what the family's rules say, in place. Raises UmgError(UNSUPPORTED_FIELD, INVALID_FIELD) for
    what they refuse, naming the field as the caller wrote it, or by its canonical path where only that is known.

    Only `reasoning` and `source.edited_fields` are ever written: a copy of a long conversation would cost more than all
    else here. The request is the service's own from its admission on; whoever handed it in must not rely on these two.

    What is changed from what the caller said is noted in `edited_fields`; an effort that is put into the words of the
    model's tier beside itself is not, since a provider of the caller's format still reads the original.
    """
    if not model.family and suffix is None:
        return
    if request.source.family_fields and model.family in FAMILIES:
        _refuse_fields(request.source.family_fields, model.family)
    if (rules := RULES.get(model.family)) is not None:
        rules(request, model, suffix, stream)


def _refuse_fields(written: Iterable[str], family: str) -> None:
    for path in written:
        owner = OWNERS.get(path) or next((OWNERS[head] for head in _heads(path) if head in OWNERS), "")
        if owner not in ("", family):
            raise _unsupported(path, f"only models of family {owner} take it, not those of {family}; leave it out")
        if family == "famQ" and path in INSIDE_PARAMETERS:
            problem = f"models of family famQ take it inside `parameters` only; send it as `parameters.{path}`"
            raise _invalid(path, problem)


def _heads(path: str) -> Iterator[str]:
    """`a.b.c` -> `a`, `a.b`."""
    return (path[:at] for at, character in enumerate(path) if character == ".") if "." in path else iter(())


def _refuse_thinking(request: pb.GenerateRequest, model: FamilyModel) -> None:
    """For the families without the object `thinking`: they have a switch of their own, so that `enabled` would be taken
    and ignored, and is refused. `disabled` is the table's default and says nothing to them: what it left in the
    canonical form goes.
    """
    reasoning = request.reasoning
    if "thinking" not in request.source.family_fields or reasoning.declared_as_enable_thinking:
        return
    if reasoning.mode == pb.REASONING_MODE_ENABLED:
        problem = f"models of family {model.family} are not switched by it; leave it out or choose another model"
        raise _unsupported("thinking", problem)
    reasoning.ClearField("mode")
    if _written(request, "thinking_budget", "thinkingBudget") is None:
        reasoning.ClearField("budget_tokens")  # that of `thinking` itself


# --- famG


# Share of the largest budget that an effort stands for (the chat table: about 20 %, 50 % and 80 %). Not shown: the
# efforts that only SDKs know; we take the next step below, and all above.
SHARES = {"none": 0.0, "minimal": 0.05, "low": 0.2, "medium": 0.5, "high": 0.8, "xhigh": 1.0, "max": 1.0}

# The level tier documents two levels. Not shown: which one is nearest to the other efforts.
LEVELS = {"minimal": "low", "low": "low", "medium": "high", "high": "high", "xhigh": "high", "max": "high"}


def _fam_g(request: pb.GenerateRequest, model: FamilyModel, suffix: Suffix | None, stream: bool) -> None:
    """Chat rule 5, "generationConfig", readings 8 and 10."""
    if suffix is None and not request.HasField("reasoning"):
        return
    reasoning, before = request.reasoning, _kept(request)
    chat = request.source.format == "chat"
    if chat:
        _refuse_thinking(request, model)
        if not (suffix and suffix.form == "thinking" and not request.HasField("max_output_tokens")):
            reasoning.ClearField("effort")  # reading 10: changes nothing
    if chat or request.source.format == "native":
        _refuse_other_tier(request, model)
    if suffix is not None:
        _think_by_suffix(reasoning, model, suffix)
        if not reasoning.HasField("include_thoughts"):
            reasoning.include_thoughts = not _off(reasoning)
    if not chat:
        _settle(request, before)
        _say_by_tier(reasoning, model)
        return
    _say_by_tier(reasoning, model)
    if reasoning.HasField("include_thoughts"):
        # Readable in streams only, and only where thinking is on and was asked for: by a suffix, or by a budget (a
        # model with levels takes none, so that `include_thoughts` alone asks).
        asked = suffix is not None or model.levels or reasoning.HasField("budget_tokens")
        reasoning.include_thoughts = reasoning.include_thoughts and asked and stream and not _off(reasoning)
    _settle(request, before)


def _refuse_other_tier(request: pb.GenerateRequest, model: FamilyModel) -> None:
    """A budget is for the tier with budget control, a level for that with level control ("generationConfig")."""
    if model.levels and request.reasoning.HasField("budget_tokens"):
        path = _written(request, "thinking_budget", "thinkingBudget") or "reasoning.budget_tokens"
        raise _unsupported(path, "this model takes no budget; set its thinking level to LOW or HIGH")
    if not model.levels and request.reasoning.level:
        path = _written(request, "thinking_level", "thinkingLevel") or "reasoning.level"
        raise _unsupported(path, "this model takes no level; set its thinking budget")


def _think_by_suffix(reasoning: pb.ReasoningOptions, model: FamilyModel, suffix: Suffix) -> None:
    """The suffix wins over what the body says. Only `-thinking`, which says no more than that it thinks, leaves the
    body the say in how much.
    """
    if suffix.form == "thinking":
        _think(reasoning, model)
        return
    for field in ("mode", "budget_tokens", "effort", "level", "declared_as_enable_thinking"):
        reasoning.ClearField(field)
    if suffix.form == "budget":
        if model.levels:
            problem = "this model takes no budget; use the suffix -thinking-low or -thinking-high"
            raise _invalid("model", problem)
        reasoning.budget_tokens = suffix.budget
    elif suffix.form == "nothinking":
        _switch_off(reasoning, model)
    elif model.levels:
        reasoning.level = suffix.form
    else:
        reasoning.effort, reasoning.budget_tokens = suffix.form, _share(suffix.form, model.largest_budget)


def _think(reasoning: pb.ReasoningOptions, model: FamilyModel) -> None:
    """As much as the body's effort (a share of its budget where it gives both), level or budget says, else
    automatically, which models with levels do unless told otherwise.
    """
    if reasoning.effort and reasoning.budget_tokens:
        whole = reasoning.budget_tokens if reasoning.budget_tokens > 0 else model.largest_budget
        reasoning.budget_tokens = _share(reasoning.effort, whole)
    elif not (reasoning.effort or reasoning.HasField("budget_tokens") or _off(reasoning) or model.levels):
        reasoning.budget_tokens = -1


def _say_by_tier(reasoning: pb.ReasoningOptions, model: FamilyModel) -> None:
    """What was said in the words of other formats, as the model's tier says it. An effort stays beside it: providers
    of formats without budgets read that.
    """
    effort = reasoning.effort
    if model.levels:
        if _off(reasoning) or effort == "none":
            _switch_off(reasoning, model)
        elif effort and not reasoning.level:
            reasoning.level = LEVELS.get(effort, "high")
        elif reasoning.budget_tokens > 0 and not reasoning.level:
            reasoning.level = "low" if 2 * reasoning.budget_tokens <= model.largest_budget else "high"
        reasoning.ClearField("budget_tokens")
    elif not reasoning.HasField("budget_tokens"):
        if _off(reasoning):
            reasoning.budget_tokens = 0
        elif effort or reasoning.level:
            reasoning.budget_tokens = _share(effort or reasoning.level, model.largest_budget)
        elif reasoning.mode:
            reasoning.budget_tokens = -1
        reasoning.ClearField("level")


def _switch_off(reasoning: pb.ReasoningOptions, model: FamilyModel) -> None:
    """Each tier in its own word, as if the body had said it; levels have none for off. Beside it the effort, as in
    `_say_by_tier`.
    """
    reasoning.ClearField("level")
    reasoning.effort = "none"
    if model.levels:
        reasoning.ClearField("budget_tokens")
        reasoning.mode = pb.REASONING_MODE_DISABLED
    else:
        reasoning.budget_tokens = 0


def _off(reasoning: pb.ReasoningOptions) -> bool:
    if reasoning.HasField("budget_tokens"):
        return reasoning.budget_tokens == 0
    return reasoning.mode == pb.REASONING_MODE_DISABLED


def _share(effort: str, budget: int) -> int:
    """Tokens of the effort; at least 1 where it thinks, for 0 would switch it off."""
    share = SHARES.get(effort, 1.0)
    return max(int(share * budget), 1) if share else 0


# --- the others


def _fam_q(request: pb.GenerateRequest, model: FamilyModel, suffix: Suffix | None, stream: bool) -> None:
    """Chat rule 3: without a stream `enable_thinking` is turned off (readings, 9: a normal answer, no reasoning)."""
    if not request.HasField("reasoning"):
        return
    reasoning, before = request.reasoning, _kept(request)
    _refuse_thinking(request, model)
    if reasoning.declared_as_enable_thinking and reasoning.mode == pb.REASONING_MODE_ENABLED and not stream:
        reasoning.mode = pb.REASONING_MODE_DISABLED
    _settle(request, before)


def _fam_c(request: pb.GenerateRequest, model: FamilyModel, suffix: Suffix | None, stream: bool) -> None:
    """Chat rule 6: search is done with a tool of the caller's, beside which the option may stand."""
    if request.HasField("search") and not request.tools:
        field = "web_search_options" if "web_search_options" in request.source.family_fields else "search"
        problem = "models of family famC do not search by this option alone; send a search tool of your own in `tools`"
        raise _unsupported(field, problem)


def _other(request: pb.GenerateRequest, model: FamilyModel, suffix: Suffix | None, stream: bool) -> None:
    """Of famO and famX. What the latter says of search (`mode`, `return_citations`) is canonical already."""
    if request.HasField("reasoning"):
        before = _kept(request)
        _refuse_thinking(request, model)
        _settle(request, before)


# famR is not here: `thinking` is its own, and that it is off by default is what our own providers do, not forced.
RULES: dict[str, Callable[[pb.GenerateRequest, FamilyModel, Suffix | None, bool], None]] = {
    "famG": _fam_g,
    "famQ": _fam_q,
    "famC": _fam_c,
    "famO": _other,
    "famX": _other,
}


def _kept(request: pb.GenerateRequest) -> pb.ReasoningOptions:
    kept = pb.ReasoningOptions()
    kept.CopyFrom(request.reasoning)
    return kept


def _settle(request: pb.GenerateRequest, before: pb.ReasoningOptions) -> None:
    """Notes that `reasoning` is not what it was."""
    changed = request.reasoning != before
    if not request.reasoning.ListFields():
        request.ClearField("reasoning")
    if changed and request.HasField("source") and "reasoning" not in request.source.edited_fields:
        request.source.edited_fields.append("reasoning")


def _written(request: pb.GenerateRequest, *names: str) -> str | None:
    """The path under which a chat body said one of the names."""
    return next((path for path in request.source.family_fields if path.rpartition(".")[2] in names), None)


def _unsupported(field: str, problem: str) -> UmgError:
    return UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, f"{field}: {problem}", field=field)


def _invalid(field: str, problem: str) -> UmgError:
    return UmgError(pb.ERROR_REASON_INVALID_FIELD, f"{field}: {problem}", field=field)
