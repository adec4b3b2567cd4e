"""List of LiteLLM settings that were not converted, with the reason and the models that contain them."""

from collections.abc import Iterable

from umg_grpc.config.importers.config_text_builder import ImportedConfig
from umg_grpc.config.importers.unconverted_settings import reason_of

PLACE_NAMES = {"entry": "model_list"}
"""Section of a setting -> name of the section in the report, if it differs."""


class UnconvertedSettings:
    """Settings without a counterpart, while a config is converted: one line for equal settings of several models."""

    def __init__(self) -> None:
        self._models: dict[tuple[str, str, str], list[str]] = {}

    def add(self, place: str, keys: Iterable[str], model: str = "", reason: str = "") -> None:
        """Add the settings of a model in the section `place`. `reason`: another section whose reasons apply, or ""."""
        for key in keys:
            models = self._models.setdefault((place, key, reason_of("litellm", reason or place, key)), [])
            if model and model not in models:
                models.append(model)

    def list_in(self, made: ImportedConfig) -> None:
        """Add one line for each setting to the report of a converted config."""
        for (place, key, reason), models in self._models.items():
            name = ".".join(filter(None, (PLACE_NAMES.get(place, place), key)))
            of = f" of {', '.join(f'`{model}`' for model in models)}" if models else ""
            made.lose(name + of, reason)
