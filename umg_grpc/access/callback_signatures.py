"""Signatures of notifications: of those from providers to the gateway, and of those from the gateway to callers."""

import hmac
from base64 import b64encode
from collections.abc import Sequence

PROVIDER_PURPOSE = b"umg callbacks of providers"
CALLER_PURPOSE = b"umg callbacks to callers:"
"""Purposes from which keys are derived, so that a signature for one of them is none for another."""
CALLBACK_PATH = "/vidE/callbacks/"
SECRET_PREFIX = "whsec_"  # noqa: S105  of Standard Webhooks, not a secret


class CallbackSignatures:
    """Signer of notifications: creates and verifies the signed paths for providers, and signs the gateway's own."""

    def __init__(self, secret: str, accepted: Sequence[str] = ()) -> None:
        """Create a signer with the operator's `secret`, which also signs links to files. `accepted`: further secrets,
        for a rotation: paths signed with them are valid, and they also sign notifications.
        """
        self._secrets = [each.encode() for each in (secret, *accepted)]
        self._provider_keys = [hmac.digest(each, PROVIDER_PURPOSE, "sha256") for each in self._secrets]

    def path_of(self, task_id: str) -> str:
        """Return the signed path at which a provider notifies the gateway of the state of a task."""
        return f"{CALLBACK_PATH}{task_id}/{self._signature(self._provider_keys[0], task_id)}"

    def is_valid(self, task_id: str, signature: str) -> bool:
        """Return whether a callback path of the task has a valid signature. Compares in constant time."""
        given = signature.encode(errors="replace")
        expected = [self._signature(key, task_id).encode() for key in self._provider_keys]
        return any(hmac.compare_digest(each, given) for each in expected)

    def signing_secret(self, key_id: str) -> str:
        """Return the secret (Standard Webhooks) with which a key's holder verifies the gateway's notifications."""
        return SECRET_PREFIX + b64encode(self._caller_key(self._secrets[0], key_id)).decode()

    def headers(self, key_id: str, callback_id: str, seconds: int, body: bytes) -> dict[str, str]:
        """Return the signature headers (Standard Webhooks) of a notification to the holder of a key. `callback_id`:
        equal for repeated attempts; `seconds`: Unix time at which it is sent.
        """
        keys = [self._caller_key(secret, key_id) for secret in self._secrets]
        return signature_headers(keys, callback_id, seconds, body)

    def _signature(self, key: bytes, task_id: str) -> str:
        return hmac.digest(key, task_id.encode(errors="replace"), "sha256").hex()

    def _caller_key(self, secret: bytes, key_id: str) -> bytes:
        return hmac.digest(secret, CALLER_PURPOSE + key_id.encode(), "sha256")


def signature_headers(keys: Sequence[bytes], message_id: str, seconds: int, body: bytes) -> dict[str, str]:
    """Return the signature headers (Standard Webhooks) of a notification, with a signature by each key. `message_id`:
    equal for repeated attempts; `seconds`: Unix time at which it is sent.
    """
    signed = b".".join([message_id.encode(), str(seconds).encode(), body])
    digests = [hmac.digest(key, signed, "sha256") for key in keys]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": " ".join(f"v1,{b64encode(digest).decode()}" for digest in digests),
    }
