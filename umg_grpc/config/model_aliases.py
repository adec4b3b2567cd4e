"""Aliases, additional names of models: reads and checks the config section `aliases`."""

from collections.abc import Mapping

from umg_grpc.config.channel_section import MODEL_ID
from umg_grpc.config.config_values import ModelInfo
from umg_grpc.config.model_index import ModelIndex
from umg_grpc.config.yaml_document import Path, YamlDocument
from umg_grpc.knowledge.families.text_model_rules import family_of, split_suffix


def aliases(
    document: YamlDocument, written: Mapping[str, str], models: Mapping[str, ModelInfo], served: ModelIndex | None
) -> dict[str, str]:
    """Return the model id of each alias in the section `aliases` (`written`), and report invalid aliases. `models`:
    properties by id from the section `models`; `served`: index of the channels' models, None if a channel is
    unreadable, so that ids cannot be checked.
    """
    ids = set() if served is None else {*served.exact(), *models}
    for name, model in written.items():
        path: Path = ("aliases", name)
        if MODEL_ID.fullmatch(name) is None:
            document.problem(path, "expected a name of up to 256 characters without spaces or `*`")
        elif name in ids:
            document.problem(path, "expected a name of its own; there is a model of this id")
        elif model in written:
            document.problem(path, f"expected the id of a model; `{model}` is an alias itself")
        elif served is not None and not is_served(served, models, model):
            document.problem(path, "expected the id of a model that some channel serves, or one with a suffix")
    return dict(written)


def is_served(served: ModelIndex, models: Mapping[str, ModelInfo], model: str) -> bool:
    """Return whether a channel serves the model id, or for famG the id without its suffix (for example `-thinking`)."""
    if served.find(model) is not None:
        return True
    found = served.find(split[0]) if (split := split_suffix(model)) is not None else None
    return found is not None and any(
        (way.family or (models[way.id].family if way.id in models else None) or family_of(way.id, way.upstream))
        == "famG"
        for _, way in found.ways
    )
