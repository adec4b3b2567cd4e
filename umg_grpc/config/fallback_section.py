"""Fallbacks, models that are called in place of a failed model: reads and checks the config section `fallbacks`."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import fields

from umg_grpc.base.wildcard_patterns import wildcard_match
from umg_grpc.config.config_values import ModelInfo
from umg_grpc.config.file_sections import Fallbacks
from umg_grpc.config.model_aliases import is_served
from umg_grpc.config.model_index import ModelIndex
from umg_grpc.config.typed_sections_from_yaml import read_entry
from umg_grpc.config.yaml_document import Path, YamlDocument

FALLBACK_CAUSES = tuple(field.name for field in fields(Fallbacks))
"""Causes of failure for which the section lists fallbacks, in the order of `Fallbacks`."""


def fallbacks(
    document: YamlDocument,
    written: Mapping[str, object],
    names: Mapping[str, str],
    models: Mapping[str, ModelInfo],
    served: ModelIndex | None,
) -> dict[str, Fallbacks]:
    """Return the fallbacks of each model id or pattern in the section `fallbacks` (`written`), and report invalid ones.
    `names`: model id of each alias; `models`: properties by model id from the section `models`; `served`: index of the
    channels' models, None if a channel is unreadable, so that ids cannot be checked.
    """
    made = dict[str, Fallbacks]()
    for model, value in written.items():
        path: Path = ("fallbacks", model)
        if (problem := problem_of_model(model, names, served)) is not None:
            document.problem(path, problem)
        for place, listed in _lists(path, value):
            for at, problem in _problems(model, listed, names, models, served):
                document.problem((*place, *at), problem)
        if isinstance(value, list):
            made[model] = Fallbacks(**dict.fromkeys(FALLBACK_CAUSES, tuple(map(str, value))))
        elif not isinstance(value, dict):
            document.problem(
                path, f"expected a list of models, or a mapping of causes ({', '.join(FALLBACK_CAUSES)}) to lists"
            )
        elif not value:
            document.problem(path, f"expected at least one cause of {', '.join(FALLBACK_CAUSES)}")
        elif (entry := read_entry(document, path, value, Fallbacks)) is not None:
            made[model] = entry
    return made


def fallbacks_of(written: Mapping[str, Fallbacks], model: str) -> Fallbacks | None:
    """Return the fallbacks of a model: by its id, else by the longest pattern that matches it; None without any."""
    found = written.get(model)
    if found is None:
        patterns = [each for each in written if "*" in each and wildcard_match(each, model) is not None]
        if not patterns:
            return None
        found = written[max(patterns, key=len)]
    lists = {cause: tuple(name for name in getattr(found, cause) if name != model) for cause in FALLBACK_CAUSES}
    return Fallbacks(**lists) if any(lists.values()) else None


def problem_of_model(model: str, names: Mapping[str, str], served: ModelIndex | None) -> str | None:
    """Return the text that should replace the invalid model id or pattern `model`; None if `model` is valid."""
    if model in names:
        return f"expected the id of a model; `{model}` is an alias of `{names[model]}`"
    if model.count("*") > 1:
        return "expected the id of a model, or a pattern with one `*`"
    if served is None or served.find(model) is not None:
        return None
    if "*" not in model:
        return "expected the id of a model that some channel serves"
    if served.has_patterns or any(wildcard_match(model, each) is not None for each in served.exact()):
        return None
    return "expected a pattern that matches a model which some channel serves"


def _lists(path: Path, value: object) -> Iterator[tuple[Path, Sequence[object]]]:
    if isinstance(value, list):
        yield path, value
    for cause, listed in value.items() if isinstance(value, dict) else ():
        if cause in FALLBACK_CAUSES and isinstance(listed, list):
            yield (*path, cause), listed


def _problems(
    model: str,
    listed: Sequence[object],
    names: Mapping[str, str],
    models: Mapping[str, ModelInfo],
    served: ModelIndex | None,
) -> Iterator[tuple[Path, str]]:
    """Yield (path, problem) of a list of fallbacks. An empty path means a problem of the whole list."""
    if not listed:
        yield (), "expected at least one model"
    known = list[object]()
    for position, name in enumerate(listed):
        if not isinstance(name, str):
            yield (position,), "expected the id or alias of a model"
            continue
        meant = names.get(name, name)
        if meant == model:
            yield (position,), f"expected another model than `{model}`, whose failure it follows"
        elif meant in known:
            yield (position,), f"expected each model once; `{name}` stands before"
        elif served is not None and name not in names and not is_served(served, models, name):
            yield (position,), "expected the id or alias of a model that some channel serves"
        known.append(meant)
