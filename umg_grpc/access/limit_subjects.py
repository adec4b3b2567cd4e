"""Subjects of limits: an API key, or a model for the calls of all keys together."""

from typing import Protocol

from umg_grpc.config.file_sections import ModelLimits

MODEL_PREFIX = "model:"  # of the ids of models, to keep them apart from those of keys


class Limited(Protocol):
    """Interface of an API key or a model as the subject of limits. A limit of None means unlimited."""

    @property
    def limit_id(self) -> str:
        """Unique id under which the calls of the key or model are counted."""

    @property
    def requests_per_minute(self) -> int | None:
        """Maximum number of calls of the key or model in any 60 seconds."""

    @property
    def tokens_per_minute(self) -> int | None:
        """Maximum number of input and output tokens together that the key or model may use in any 60 seconds."""

    @property
    def concurrent_requests(self) -> int | None:
        """Maximum number of calls of the key or model in flight."""


class LimitedModel:
    """Model with limits, which the calls of all keys share."""

    __slots__ = ("concurrent_requests", "limit_id", "requests_per_minute", "tokens_per_minute")

    def __init__(self, model: str, limits: ModelLimits) -> None:
        self.limit_id = MODEL_PREFIX + model
        self.requests_per_minute = limits.rpm
        self.tokens_per_minute = limits.tpm
        self.concurrent_requests = limits.concurrency


def subject_of(limit_id: str) -> str:
    """Return the name of the key or model that a limit belongs to, for error messages: "this API key" or the model."""
    return f"the model `{limit_id.removeprefix(MODEL_PREFIX)}`" if limit_id.startswith(MODEL_PREFIX) else "this API key"
