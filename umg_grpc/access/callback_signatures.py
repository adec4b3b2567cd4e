"""Signatures of callbacks: of providers' notifications to the gateway, and of the gateway's to callers."""

import hmac
from base64 import b64encode

PROVIDER_PURPOSE = b"umg callbacks of providers"
CALLER_PURPOSE = b"umg callbacks to callers:"
"""Purposes from which keys are derived, so that a signature for one of them is none for another."""
PATH = "/vidE/callbacks/"
SECRET_PREFIX = "whsec_"  # noqa: S105  of Standard Webhooks, not a secret


class CallbackSignatures:
    """Signer and verifier of the paths at which providers notify the gateway, and signer of callers' notifications."""

    def __init__(self, secret: str) -> None:
        """Create a signer. `secret`: of the operator, see `file_links.link_secret`."""
        self._secret = secret.encode()
        self._provider_key = hmac.digest(self._secret, PROVIDER_PURPOSE, "sha256")

    def path_of(self, task_id: str) -> str:
        """Return the path at which a provider notifies the gateway of a task."""
        return f"{PATH}{task_id}/{self._signature(task_id)}"

    def is_valid(self, task_id: str, signature: str) -> bool:
        """Return whether the signature is that of the task's path, in constant time."""
        return hmac.compare_digest(self._signature(task_id).encode(), signature.encode(errors="replace"))

    def signing_secret(self, key_id: str) -> str:
        """Return the secret with which the holder of a key verifies notifications, as libraries for Standard Webhooks
        take it.
        """
        return SECRET_PREFIX + b64encode(self._caller_key(key_id)).decode()

    def headers(self, key_id: str, callback_id: str, seconds: int, body: bytes) -> dict[str, str]:
        """Return the headers of Standard Webhooks for a notification of the holder of a key, sent at Unix `seconds`."""
        signed = b".".join([callback_id.encode(), str(seconds).encode(), body])
        signature = b64encode(hmac.digest(self._caller_key(key_id), signed, "sha256")).decode()
        return {
            "webhook-id": callback_id,
            "webhook-timestamp": str(seconds),
            "webhook-signature": f"v1,{signature}",
        }

    def _signature(self, task_id: str) -> str:
        return hmac.digest(self._provider_key, task_id.encode(errors="replace"), "sha256").hex()

    def _caller_key(self, key_id: str) -> bytes:
        return hmac.digest(self._secret, CALLER_PURPOSE + key_id.encode(), "sha256")
