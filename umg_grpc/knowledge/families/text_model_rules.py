"""Rules of the six text model families: which request fields a family rejects, and how it changes reasoning options.

The specification of texts defines the families by the prefixes of model ids (`famG-`); their fields and reasoning
controls differ from model to model. Codecs do not depend on families: they record which family-specific fields a body
has (`RequestNotes.family`). `apply` checks these fields once, before the first attempt. It returns whether it changed
options, since a provider of the caller's own format then needs a changed body. Pure.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.v1.limits import MAX_COUNT

TEXT_FAMILIES = ("famG", "famO", "famC", "famQ", "famR", "famX")


# --- the model's family


@dataclass(frozen=True)
class FamilyModel:
    """Properties of a text model on which the rules of its family depend."""

    family: str = ""
    """Name of the family; "" for a model to which no documented family's rules apply."""
    levels: bool = False
    """famG: whether reasoning is set by a level (famG-3) instead of a budget of tokens (famG-2.5)."""
    largest_budget: int = 32768
    """famG: maximum of reasoning tokens, of which "the thinking budget" shares are fractions."""


@dataclass(frozen=True)
class Suffix:
    """Reasoning option at a model id's end (`-thinking`; specification of texts, "generationConfig", chat rule 5)."""

    form: Literal["thinking", "budget", "nothinking", "low", "high"]
    budget: int = 0


_SUFFIX = re.compile(r"(.+)-(?:(thinking)|(nothinking)|thinking-(low|high)|thinking-([0-9]{1,18}))", re.ASCII)
_LEVEL_TIER = re.compile(r"-3(?![0-9])")


def split_suffix(model: str) -> tuple[str, Suffix] | None:
    """Split a model id into the id without its reasoning suffix, and the suffix; None for an id without one."""
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
    """Return the family of the first of these ids with a documented prefix (`famG-`); "" if none has one."""
    return next((family for model in ids for family in TEXT_FAMILIES if model.startswith(f"{family}-")), "")


def family_model(family: str, *ids: str) -> FamilyModel:
    """Return the properties of a model that the rules of its family need; `ids`: public id first. famG-2.5 models have
    reasoning budgets, famG-3 models reasoning levels (readings, 8). `2.5` or `-3` in the first id that has either
    decides; budgets are the default. The documents do not state maximum budgets; these are the vendor's: 24576 for
    `flash`, 32768 for others.
    """
    if family != "famG":
        return FamilyModel(family)
    deciding_id = next((model for model in ids if "2.5" in model or _LEVEL_TIER.search(model)), "2.5")
    flash = any("flash" in model.lower() for model in ids)
    return FamilyModel(family, levels="2.5" not in deciding_id, largest_budget=24576 if flash else 32768)


# --- fields that the families reject

# Chat fields that the document gives to one family (chat rules 2 and 5, and the notes of the table). On a model of
# another family they are a 400 (readings, 1); on a model without a family they are forwarded unchanged.
MODEL_OWNERS = {
    "enable_thinking": "famQ",
    "parameters": "famQ",
    "search_parameters": "famX",
    "extra_body.vendorg": "famG",
    "extra_body.google": "famG",
    "vendorg": "famG",
    "google": "famG",
    "generationConfig": "famG",
}

_FILE_PART = re.compile(r"messages\[\d+\]\.content\[\d+\]")
"""Path of a file in a chat body, which no family accepts (chat rule 8)."""

# Chat fields that famQ accepts only inside `parameters` (chat rule 2; readings, 9).
INSIDE_PARAMETERS = frozenset(
    {"incremental_output", "enable_search", "search_options", "asr_options", "temperature", "top_p"}
)


# --- chat fields for a request that was written in another format


@dataclass(frozen=True)
class ChatFields:
    """Choice among the chat fields that mean the same option, for a provider's model."""

    thinking: Literal["thinking", "enable_thinking", "budget", "level", "reasoning_effort", ""] = "reasoning_effort"
    """Field that controls reasoning; "" for the one that the caller used."""
    parameters: frozenset[str] = frozenset()
    """Fields that are sent inside `parameters`, by their names there. No other field is sent there."""
    search_parameters: bool = False
    searches_alone: bool = True
    """Whether `web_search_options` is accepted without a tool of the caller."""


# The object `thinking` belongs to famR (chat rule 4; readings, 8), but the document names no family at the field. famC
# accepts it too: it is that vendor's own object, and callers of other gateways send it to its models in this format.
CHAT_FIELDS = {
    "famG": ChatFields(thinking="budget"),  # chat rule 5: an effort alone changes nothing
    "famO": ChatFields(),
    "famC": ChatFields(thinking="thinking", searches_alone=False),  # chat rule 6
    "famQ": ChatFields(thinking="enable_thinking", parameters=INSIDE_PARAMETERS),  # chat rules 2 and 3
    "famR": ChatFields(thinking="thinking"),  # chat rule 4
    "famX": ChatFields(search_parameters=True),
}
CACHED_MODELS = 1024
LEVEL_WORDS = ChatFields(thinking="level")  # famG-3, which accepts no budget
# A model without a family: all fields, as the caller wrote them; sampling fields only where the format itself has them.
ANY_FIELDS = ChatFields(thinking="", parameters=INSIDE_PARAMETERS - {"temperature", "top_p"}, search_parameters=True)


@lru_cache(CACHED_MODELS)
def chat_words(model: str) -> ChatFields:
    """Return, by the family in the model id, which chat field to send for options that have several fields."""
    family = family_of(model)
    if family_model(family, model).levels:
        return LEVEL_WORDS
    return CHAT_FIELDS.get(family, ANY_FIELDS)


# --- changes to a request


def apply(
    request: pb.GenerateRequest, fields: Sequence[str], model: FamilyModel, suffix: Suffix | None, *, stream: bool
) -> tuple[pb.GenerateRequest, bool]:
    """Apply the family's rules to a request. Return it, or a copy with changed `reasoning`, and whether an option that
    the caller set was changed: a provider of the caller's format then needs a new body. A level or budget derived from
    an effort is no change, since the provider reads the effort. `fields`: paths of family-specific fields in the
    caller's body; `suffix`: reasoning suffix of the model id; `stream`: whether the response is streamed. Raise
    UmgError(UNSUPPORTED_FIELD, INVALID_FIELD) for a rejected field.
    """
    if fields and model.family in TEXT_FAMILIES:
        _reject_fields(fields, model.family)
    if model.family == "famC":
        _check_search(request, fields)
    if (rules := FAMILY_RULES.get(model.family)) is None or (suffix is None and not request.HasField("reasoning")):
        return request, False
    options = _options_of(request)
    edited = rules(options, fields, model, suffix, stream)
    if not options.reasoning.ListFields():
        options.ClearField("reasoning")
    if options == _options_of(request):
        return request, False
    changed = pb.GenerateRequest()
    changed.CopyFrom(request)
    for name in ("reasoning", "face_hints"):
        changed.ClearField(name)
    changed.MergeFrom(options)
    if not request.HasField("source"):
        changed.ClearField("source")
    return changed, edited


def _options_of(request: pb.GenerateRequest) -> pb.GenerateRequest:
    """Return a copy with only the fields that the rules use, since long conversations are slow to copy."""
    options = pb.GenerateRequest()
    if request.HasField("reasoning"):
        options.reasoning.CopyFrom(request.reasoning)
    if request.HasField("face_hints"):
        options.face_hints.CopyFrom(request.face_hints)
    if request.HasField("max_output_tokens"):
        options.max_output_tokens = request.max_output_tokens
    if request.HasField("source"):
        options.source.format = request.source.format
    return options


def _reject_fields(written: Iterable[str], family: str) -> None:
    for path in written:
        if _FILE_PART.fullmatch(path):
            message = f"`{path}`: files are not accepted here; send them to /v1/responses as `input_file`"
            raise UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, message, field=path)
        owner = MODEL_OWNERS.get(path) or next(
            (MODEL_OWNERS[prefix] for prefix in _prefixes(path) if prefix in MODEL_OWNERS), ""
        )
        if owner not in ("", family):
            raise _unsupported(path, f"only models of family {owner} accept it, not those of {family}; leave it out")
        if family == "famQ" and path in INSIDE_PARAMETERS:
            problem = f"models of family famQ accept it inside `parameters` only; send it as `parameters.{path}`"
            raise _invalid(path, problem)


def _prefixes(path: str) -> Iterator[str]:
    return (path[:at] for at, character in enumerate(path) if character == ".") if "." in path else iter(())


def _reject_thinking(request: pb.GenerateRequest, fields: Sequence[str], model: FamilyModel) -> None:
    """Raise UmgError for `thinking` if the family controls reasoning by another field and would ignore `thinking`."""
    reasoning = request.reasoning
    if "thinking" not in fields or request.face_hints.enable_thinking:
        return
    if reasoning.mode == pb.REASONING_MODE_ENABLED:
        problem = f"models of family {model.family} cannot be switched by it; leave it out or choose another model"
        raise _unsupported("thinking", problem)
    reasoning.ClearField("mode")
    if _caller_path(fields, "thinking_budget", "thinkingBudget") is None:
        reasoning.ClearField("budget_tokens")  # the budget of `thinking` itself


# --- famG


# Share of the largest budget for each effort (the chat table: about 20 %, 50 % and 80 %). Not shown: the efforts that
# only SDKs know; we use the next lower step, and the whole budget for the highest efforts.
EFFORT_SHARES = {"none": 0.0, "minimal": 0.05, "low": 0.2, "medium": 0.5, "high": 0.8, "xhigh": 1.0, "max": 1.0}

# The level tier documents two levels. Not shown: the nearest level of the other efforts.
EFFORT_LEVELS = {"minimal": "low", "low": "low", "medium": "high", "high": "high", "xhigh": "high", "max": "high"}


def _fam_g(
    request: pb.GenerateRequest, fields: Sequence[str], model: FamilyModel, suffix: Suffix | None, stream: bool
) -> bool:
    """Apply the rules of famG (chat rule 5, "generationConfig", readings 8 and 10)."""
    reasoning, before = request.reasoning, _copied_reasoning(request)
    chat = request.source.format == "chat"
    if chat:
        _reject_thinking(request, fields, model)
        if not (suffix and suffix.form == "thinking" and not request.HasField("max_output_tokens")):
            reasoning.ClearField("effort")  # reading 10: changes nothing
    if chat or request.source.format == "native":
        _reject_other_tier(request, fields, model)
    if suffix is not None:
        _apply_suffix(request, model, suffix)
        if not reasoning.HasField("include_thoughts"):
            reasoning.include_thoughts = not _is_off(reasoning)
    if not chat:
        edited = reasoning != before
        _convert_to_tier(reasoning, model)
        return edited
    _convert_to_tier(reasoning, model)
    if reasoning.HasField("include_thoughts"):
        # Reasoning is readable in streams only, and only where it is on and was requested: by a suffix, or by a budget
        # (a model with levels accepts none, so `include_thoughts` alone requests it).
        requested = suffix is not None or model.levels or reasoning.HasField("budget_tokens")
        reasoning.include_thoughts = reasoning.include_thoughts and requested and stream and not _is_off(reasoning)
    return reasoning != before


def _reject_other_tier(request: pb.GenerateRequest, fields: Sequence[str], model: FamilyModel) -> None:
    """Raise UmgError for a reasoning budget on a famG model with levels, or a level on one with budgets."""
    if model.levels and request.reasoning.HasField("budget_tokens"):
        path = _caller_path(fields, "thinking_budget", "thinkingBudget") or "reasoning.budget_tokens"
        raise _unsupported(path, "this model supports no budget; set its thinking level to LOW or HIGH")
    if not model.levels and request.reasoning.level:
        path = _caller_path(fields, "thinking_level", "thinkingLevel") or "reasoning.level"
        raise _unsupported(path, "this model supports no level; set its thinking budget")


def _apply_suffix(request: pb.GenerateRequest, model: FamilyModel, suffix: Suffix) -> None:
    """Set the reasoning options that the model id's suffix selects, which override the options in the body."""
    reasoning = request.reasoning
    if suffix.form == "thinking":
        _turn_on(reasoning, model)
        return
    for field in ("mode", "budget_tokens", "effort", "level"):
        reasoning.ClearField(field)
    request.face_hints.ClearField("enable_thinking")
    if suffix.form == "budget":
        if model.levels:
            problem = "this model supports no budget; use the suffix -thinking-low or -thinking-high"
            raise _invalid("model", problem)
        if suffix.budget > MAX_COUNT:
            raise _invalid("model", f"its budget is larger than {MAX_COUNT}, the maximum; send a smaller one")
        reasoning.budget_tokens = suffix.budget
    elif suffix.form == "nothinking":
        _switch_off(reasoning, model)
    elif model.levels:
        reasoning.level = suffix.form
    else:
        reasoning.effort, reasoning.budget_tokens = suffix.form, _share(suffix.form, model.largest_budget)


def _turn_on(reasoning: pb.ReasoningOptions, model: FamilyModel) -> None:
    if reasoning.effort and reasoning.budget_tokens:
        whole = reasoning.budget_tokens if reasoning.budget_tokens > 0 else model.largest_budget
        reasoning.budget_tokens = _share(reasoning.effort, whole)
    elif not (reasoning.effort or reasoning.HasField("budget_tokens") or _is_off(reasoning) or model.levels):
        reasoning.budget_tokens = -1


def _convert_to_tier(reasoning: pb.ReasoningOptions, model: FamilyModel) -> None:
    """Convert the reasoning options to the kind that the famG model has, a level or a budget. An effort stays in the
    request too, since providers of formats without budgets read it.
    """
    effort = reasoning.effort
    if model.levels:
        if _is_off(reasoning) or effort == "none":
            _switch_off(reasoning, model)
        elif effort and not reasoning.level:
            reasoning.level = EFFORT_LEVELS.get(effort, "high")
        elif reasoning.budget_tokens > 0 and not reasoning.level:
            reasoning.level = "low" if 2 * reasoning.budget_tokens <= model.largest_budget else "high"
        reasoning.ClearField("budget_tokens")
    elif not reasoning.HasField("budget_tokens"):
        if _is_off(reasoning):
            reasoning.budget_tokens = 0
        elif effort or reasoning.level:
            reasoning.budget_tokens = _share(effort or reasoning.level, model.largest_budget)
        elif reasoning.mode:
            reasoning.budget_tokens = -1
        reasoning.ClearField("level")


def _switch_off(reasoning: pb.ReasoningOptions, model: FamilyModel) -> None:
    """Turn reasoning off: by budget 0 or, for a model with levels (no level means off), by the mode. The effort is set
    to `none`, since providers of formats without budgets read it.
    """
    reasoning.ClearField("level")
    reasoning.effort = "none"
    if model.levels:
        reasoning.ClearField("budget_tokens")
        reasoning.mode = pb.REASONING_MODE_DISABLED
    else:
        reasoning.budget_tokens = 0


def _is_off(reasoning: pb.ReasoningOptions) -> bool:
    if reasoning.HasField("budget_tokens"):
        return reasoning.budget_tokens == 0
    return reasoning.mode == pb.REASONING_MODE_DISABLED


def _share(effort: str, budget: int) -> int:
    share = EFFORT_SHARES.get(effort, 1.0)
    return max(int(share * budget), 1) if share else 0


# --- the other families


def _fam_q(
    request: pb.GenerateRequest, fields: Sequence[str], model: FamilyModel, suffix: Suffix | None, stream: bool
) -> bool:
    """Apply the rules of famQ: without a stream, `enable_thinking` is turned off (chat rule 3; readings, 9)."""
    if not request.HasField("reasoning"):
        return False
    reasoning, before = request.reasoning, _copied_reasoning(request)
    _reject_thinking(request, fields, model)
    if request.face_hints.enable_thinking and reasoning.mode == pb.REASONING_MODE_ENABLED and not stream:
        reasoning.mode = pb.REASONING_MODE_DISABLED
    return reasoning != before


def _check_search(request: pb.GenerateRequest, fields: Sequence[str]) -> None:
    if request.HasField("search") and not request.tools:
        field = "web_search_options" if "web_search_options" in fields else "search"
        problem = "models of family famC do not search by this option alone; send a search tool of your own in `tools`"
        raise _unsupported(field, problem)


def _fam_o_or_x(
    request: pb.GenerateRequest, fields: Sequence[str], model: FamilyModel, suffix: Suffix | None, stream: bool
) -> bool:
    if not request.HasField("reasoning"):
        return False
    before = _copied_reasoning(request)
    _reject_thinking(request, fields, model)
    return request.reasoning != before


# famR is not here: `thinking` is its own field, and reasoning is off by default in our own providers, not forced off.
FAMILY_RULES: dict[str, Callable[[pb.GenerateRequest, Sequence[str], FamilyModel, Suffix | None, bool], bool]] = {
    "famG": _fam_g,
    "famQ": _fam_q,
    "famO": _fam_o_or_x,
    "famX": _fam_o_or_x,
}


def _copied_reasoning(request: pb.GenerateRequest) -> pb.ReasoningOptions:
    copied = pb.ReasoningOptions()
    copied.CopyFrom(request.reasoning)
    return copied


def _caller_path(fields: Sequence[str], *names: str) -> str | None:
    return next((path for path in fields if path.rpartition(".")[2] in names), None)


def _unsupported(field: str, problem: str) -> UmgError:
    return UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, f"{field}: {problem}", field=field)


def _invalid(field: str, problem: str) -> UmgError:
    return UmgError(pb.ERROR_REASON_INVALID_FIELD, f"{field}: {problem}", field=field)
