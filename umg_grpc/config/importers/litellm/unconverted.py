"""List of the settings of LiteLLM that were not converted, with the reason and the models that state them."""

from collections.abc import Iterable

from umg_grpc.config.importers.imported_config import ImportedConfig
from umg_grpc.config.importers.unconverted_settings import reason_of

PLACE_NAMES = {"entry": "model_list"}
"""Place of a setting -> its name in the list, if another one."""


class UnconvertedSettings:
    """Settings without a counterpart, while a config is converted: one line for equal settings of several models."""

    def __init__(self) -> None:
        self._models: dict[tuple[str, str, str], list[str]] = {}

    def add(self, place: str, keys: Iterable[str], model: str = "", reason: str = "") -> None:
        """Add settings of a section, and the model that states them. `reason`: place whose reason applies, or ""."""
        for key in keys:
            models = self._models.setdefault((place, key, reason_of("litellm", reason or place, key)), [])
            if model and model not in models:
                models.append(model)

    def list_in(self, made: ImportedConfig) -> None:
        """Add the settings to the list of a converted config."""
        for (place, key, reason), models in self._models.items():
            name = ".".join(filter(None, (PLACE_NAMES.get(place, place), key)))
            of = f" of {', '.join(f'`{model}`' for model in models)}" if models else ""
            made.lose(name + of, reason)
