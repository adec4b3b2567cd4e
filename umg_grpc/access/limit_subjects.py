"""Subjects of limits: an API key, an account for its keys together, or a model for all keys together."""

from typing import Protocol

from umg_grpc.access.account_levels import CallLimits
from umg_grpc.config.file_sections import ModelLimits

MODEL_PREFIX = "model:"  # of the ids of models, to keep them apart from those of keys
ACCOUNT_SUBJECTS = {"proj_": "the project of this API key", "org_": "the organisation of this API key"}
"""Beginning of an account's id -> its name in error messages for the holders of its keys."""


class Limited(CallLimits, Protocol):
    """Interface of an API key, an account or a model as the subject of limits. A limit of None means unlimited."""

    @property
    def limit_id(self) -> str:
        """Unique id under which the calls of the subject are counted."""


class LimitedModel:
    """Model with limits, which the calls of all keys share."""

    __slots__ = ("concurrent_requests", "limit_id", "requests_per_minute", "tokens_per_minute")

    def __init__(self, model: str, limits: ModelLimits) -> None:
        self.limit_id = MODEL_PREFIX + model
        self.requests_per_minute = limits.rpm
        self.tokens_per_minute = limits.tpm
        self.concurrent_requests = limits.concurrency


def subject_of(limit_id: str) -> str:
    """Return the name of the subject that a limit belongs to, for error messages: "this API key", its project or
    organisation, or the model.
    """
    if limit_id.startswith(MODEL_PREFIX):
        return f"the model `{limit_id.removeprefix(MODEL_PREFIX)}`"
    for prefix, subject in ACCOUNT_SUBJECTS.items():
        if limit_id.startswith(prefix):
            return subject
    return "this API key"
