"""Check that the local models in a config exist, without loading the modules that run them."""

from umg_grpc.base.errors import UmgError
from umg_grpc.config import Config
from umg_grpc.upstream.local import EMBEDDING_MODEL, RERANK_MODEL, TEXT_MODELS
from umg_grpc.v1 import pb


def check_local_models(config: Config) -> None:
    """Raise UmgError(INVALID_FIELD) if a channel of the config names an unknown local model."""
    known = [*(model.model for model in TEXT_MODELS), EMBEDDING_MODEL, RERANK_MODEL]
    for channel in config.channels:
        for wanted in channel.models if "local" in channel.protocols else ():
            if wanted.upstream not in known:
                message = f"channel {channel.name}: there is no local model {wanted.upstream}, only {', '.join(known)}"
                raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field="channels")
