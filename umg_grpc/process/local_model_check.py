"""Checks of the local models in a config, without loading the modules that run them."""

from collections.abc import Mapping

from umg_grpc.base.errors import UmgError
from umg_grpc.config import Config
from umg_grpc.upstream.local import TEXT_MODELS, WORDLLAMA_MODELS, wordllama_unavailable
from umg_grpc.v1 import pb


def check_local_models(config: Config) -> None:
    """Raise UmgError(INVALID_FIELD) if a channel of the config names an unknown local model."""
    known = [*(model.model for model in TEXT_MODELS), *WORDLLAMA_MODELS]
    for channel in config.channels:
        for wanted in channel.models if "local" in channel.protocols else ():
            if wanted.upstream not in known:
                message = f"channel {channel.name}: there is no local model {wanted.upstream}, only {', '.join(known)}"
                raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field="channels")


def local_model_problems(config: Config) -> Mapping[str, str | None]:
    """Return local model -> reason why it cannot run (None if it can), for the models that the config serves."""
    reasons = {model.model: model.unavailable() for model in TEXT_MODELS}
    reasons |= dict.fromkeys(WORDLLAMA_MODELS, wordllama_unavailable())
    channels = [channel for channel in config.channels if "local" in channel.protocols]
    return {model.upstream: reasons.get(model.upstream) for channel in channels for model in channel.models}
