"""Fallbacks of LiteLLM's router: for each model a list of other models, by the kind of error."""

from collections.abc import Iterable, Iterator, Mapping

from umg_grpc.base.wildcard_patterns import wildcard_match
from umg_grpc.config.importers.config_text_builder import ImportedConfig, mapping, sequence
from umg_grpc.config.importers.tracked_source_config import SourceMapping

GENERAL_KEY, CONTEXT_KEY, CONTENT_KEY = "fallbacks", "context_window_fallbacks", "content_policy_fallbacks"
DEFAULT_FALLBACKS = "default_fallbacks"
ANY_MODEL = "*"
OF_OTHERS = ("unavailable", "quota")
"""Causes for which LiteLLM has only its general lists."""
Lists = dict[str, list[str]]


def add_fallbacks(made: ImportedConfig, sections: Mapping[str, SourceMapping]) -> None:
    """Convert LiteLLM's fallback lists to `fallbacks` by cause; earlier sections take precedence. As in LiteLLM,
    general lists do not apply to a kind of error for which at least one model has a special list.
    """
    general = _lists(made, sections, GENERAL_KEY) or {}
    for names in (_names(place, DEFAULT_FALLBACKS) for place in sections.values()):
        if names:
            general.setdefault(ANY_MODEL, _known(made, f"{DEFAULT_FALLBACKS} to", ANY_MODEL, names))
    context, content = _lists(made, sections, CONTEXT_KEY), _lists(made, sections, CONTENT_KEY)
    found = dict[str, object]()
    for model in dict.fromkeys((*general, *(context or ()), *(content or ()))):
        usual = _names_of(made, general, model)
        lists = {
            "context": usual if context is None else _names_of(made, context, model),
            "content": usual if content is None else _names_of(made, content, model),
            **dict.fromkeys(OF_OTHERS, usual),
        }
        if any(lists.values()):
            is_one = all(names == usual for names in lists.values())
            found[model] = usual if is_one else {cause: names for cause, names in lists.items() if names}
    if found:
        made.sections["fallbacks"] = found


def _names_of(made: ImportedConfig, lists: Lists, model: str) -> list[str]:
    if model in lists:  # which replace those of all models here
        return lists[model]
    return [name for name in lists.get(ANY_MODEL, []) if _alias_of(made, name) != model]


def _lists(made: ImportedConfig, sections: Mapping[str, SourceMapping], key: str) -> Lists | None:
    """Take the fallback lists of the setting `key` from the first section that has it; None if none has."""
    lists: Lists | None = None
    for section, place in sections.items():
        pairs = [pair for pair in sequence(place.peek(key)) if isinstance(pair, dict)]
        if not pairs:
            continue
        place.take(key)
        lists = {} if lists is None else lists
        for model, others in _pairs(pairs):
            label = f"fallback of `{model}` to" if key == GENERAL_KEY else f"{section}.{key}.{model}: fallback to"
            named = _alias_of(made, model)
            if named != ANY_MODEL and not _is_model(made, named):
                made.lose(f"{label} `{', '.join(others)}`", f"no converted entry of model_list has the name `{model}`")
            else:
                lists.setdefault(named, _known(made, label, named, others))
    return lists


def _pairs(pairs: Iterable[object]) -> Iterator[tuple[str, list[str]]]:
    for pair in map(mapping, pairs):
        for model, others in pair.items():
            yield str(model), [str(other) for other in sequence(others)] or [str(others)]


def _names(place: SourceMapping, key: str) -> list[str]:
    names = [name for name in sequence(place.peek(key)) if isinstance(name, str)]
    if names:
        place.take(key)
    return names


def _known(made: ImportedConfig, label: str, model: str, names: list[str]) -> list[str]:
    """Return the names that are models of the converted config, each once. List the others as unconverted."""
    known = dict[str, str]()  # model -> its first name
    for name in names:
        meant = _alias_of(made, name)
        if meant == model:
            made.lose(f"{label} `{name}`", "a model is no fallback of its own")
        elif "*" in name or not _is_model(made, meant):
            made.lose(f"{label} `{name}`", "no converted entry of model_list has this name")
        else:
            known.setdefault(meant, name)
    return [*known.values()]


def _alias_of(made: ImportedConfig, name: str) -> str:
    return str(mapping(made.sections.get("aliases")).get(name, name))


def _is_model(made: ImportedConfig, name: str) -> bool:
    ids = {model["id"] for channel in made.channels for model in channel.models}
    return name in ids or ("*" not in name and any(wildcard_match(each, name) is not None for each in ids))
