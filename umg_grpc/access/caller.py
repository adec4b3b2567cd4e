"""The caller that a key stands for, and what it may use."""

import re
from dataclasses import dataclass
from fnmatch import translate
from functools import cached_property

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb


@dataclass(frozen=True)
class Caller:
    """Who holds a key that is good; nothing secret is in it."""

    key_id: str
    name: str
    model_patterns: tuple[str, ...]
    """Ids in which `*` stands for any characters; none at all allows every model."""
    requests_per_minute: int | None
    """None is unlimited."""
    expires_at: float | None
    """Unix seconds from which on the key is refused; None is never."""

    @cached_property
    def _models(self) -> re.Pattern[str]:
        # Of fnmatch's wildcards only `*` is one here; its patterns match in one pass, whatever a caller may send.
        literal = (re.sub(r"[?\[]", r"[\g<0>]", pattern) for pattern in self.model_patterns)
        return re.compile("|".join(translate(pattern) for pattern in literal))

    def may_use(self, model: str) -> bool:
        """Whether some pattern of the key has the public id in it."""
        return not self.model_patterns or self._models.match(model) is not None

    def check_model(self, model: str) -> None:
        """Raises UmgError(PERMISSION_DENIED) if the key may not use the model."""
        if not self.may_use(model):
            message = f"this API key may not use the model `{model}`; its models are {', '.join(self.model_patterns)}"
            raise UmgError(pb.ERROR_REASON_PERMISSION_DENIED, message, model=model)
