"""The caller that a key stands for, and what it may use."""

import re
from dataclasses import dataclass
from functools import cached_property

from umg_grpc.errors import UmgError
from umg_grpc.patterns import matcher
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
    channels: tuple[str, ...] = ()
    """Names of the channels that may serve it, in which `*` stands for any characters; none at all allows each."""
    show_route: bool = False
    """Whether it is told which channel served it, and why (`x-umg-route`)."""

    @cached_property
    def _models(self) -> re.Pattern[str]:
        return matcher(self.model_patterns)

    def may_use(self, model: str, alias: str = "") -> bool:
        """Whether some pattern of the key has the public id in it, or the alias by which it was named, if any."""
        if not self.model_patterns or self._models.match(model) is not None:
            return True
        return alias != "" and self._models.match(alias) is not None

    def check_model(self, model: str, alias: str = "") -> None:
        """Raises UmgError(PERMISSION_DENIED) if the key may not use the model."""
        if not self.may_use(model, alias):
            named, allowed = alias or model, ", ".join(self.model_patterns)
            message = f"this API key may not use the model `{named}`; its models are {allowed}"
            raise UmgError(pb.ERROR_REASON_PERMISSION_DENIED, message, model=named)
