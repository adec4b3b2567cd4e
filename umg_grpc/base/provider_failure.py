"""Facts about a provider's failure: operators see them in the log, the metrics and `umg models`, callers never."""

from enum import Enum
from typing import NamedTuple

MAX_MESSAGE_CHARACTERS = 300


class FailureKind(Enum):
    """Kind of a provider's failure, named for the action that ends it, for example a new key (`docs/operating.md`)."""

    WRONG_KEY = "wrong_key"
    UNPAID = "unpaid"
    WRONG_MODEL = "wrong_model"
    WRONG_ADDRESS = "wrong_address"
    UNREADABLE = "unreadable"
    CERTIFICATE = "certificate"
    DNS = "dns"
    PROXY = "proxy"
    UNREACHABLE = "unreachable"
    RATE_LIMIT = "rate_limit"
    SLOW = "slow"
    SERVER_ERROR = "server_error"
    BROKEN = "broken"
    REQUEST = "request"


class ProviderRefusal(NamedTuple):
    """Refusal of a request by a provider as it was received. The refused part of the request is read from it."""

    protocol: str
    status: int
    body: bytes
    sent: bytes


class ProviderFailure(NamedTuple):
    """Facts about one failed attempt: kind, status, message, model, address; empty if unknown. No key is included."""

    kind: FailureKind
    status: int = 0
    """HTTP status; 0 if no response arrived."""
    code: str = ""
    """Error code, or the reason or type of the error where it has none but the HTTP status."""
    message: str = ""
    """Message of the provider, else the cause of a broken connection; at most 300 characters, secrets masked."""
    request_id: str = ""
    """Request id of the provider, by which its support finds the call."""
    model: str = ""
    host: str = ""
    """Host of the provider, with its port if the config has one."""
    path: str = ""
    content_type: str = ""
    """Media type of a response that is not JSON."""
    key_tail: str = ""
    """Last four characters of the provider key."""
    right_base_url: str = ""
    """Base URL that is probably meant, if the called path is a usual mistake."""

    def log_fields(self) -> dict[str, str | int | None]:
        """Return the facts as fields of a log line; None for an unknown fact."""
        return {
            "kind": self.kind.value,
            "upstream_status": self.status or None,
            "upstream_code": self.code or None,
            "upstream_message": self.message or None,
            "upstream_request_id": self.request_id or None,
            "upstream_model": self.model or None,
            "upstream_host": self.host or None,
            "upstream_path": self.path or None,
            "upstream_content_type": self.content_type or None,
            "upstream_right_base_url": self.right_base_url or None,
            "upstream_key": f"...{self.key_tail}" if self.key_tail else None,
        }
