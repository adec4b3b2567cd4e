"""Implementation of `umg keys`: create, list, change, rotate and revoke API keys, in a database or at a gateway."""

import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta

import msgspec
from google.protobuf.duration_pb2 import Duration

from umg_grpc.cli.admin_client import AdminClient, pages
from umg_grpc.cli.admin_connection import opened
from umg_grpc.cli.common_flags import AdminTarget
from umg_grpc.cli.key_tables import print_key, print_keys
from umg_grpc.cli.text_tables import Form
from umg_grpc.cli.time_texts import time_text
from umg_grpc.process.config_loading import load_storage
from umg_grpc.v1 import pb
from umg_grpc.wire import administration_api_json as bodies

KEYS_PER_PAGE = 1000
SHOWN_ONCE = "the key is shown only now; keep it:"

Fields = Mapping[str, object]
"""Settings of a key under their names in JSON, see `umg_grpc/wire/administration_api_json.py`."""


async def create(target: AdminTarget, fields: Fields) -> None:
    """Create a key. Print its settings, and its secret alone on the last line."""
    async with opened(target) as admin:
        made = await admin.call(bodies.decode_create(_body(fields)), pb.CreateKeyResponse)
    _warn_of_per_worker_limits(target, made.key)
    print_key(made.key)
    _print_secret(made.secret)


async def update(target: AdminTarget, reference: str, fields: Fields, tags: Mapping[str, str]) -> None:
    """Change settings of the key with the id, name or prefix `reference`. Print them all. `tags`: tags to set besides
    the existing ones; an empty value removes one.
    """
    async with opened(target) as admin:
        if tags:
            known = (await admin.call(pb.GetKeyRequest(key_id=reference), pb.GetKeyResponse)).key.settings.tags
            fields = {**fields, "tags": {name: value for name, value in {**known, **tags}.items() if value}}
        request = bodies.decode_update(_body(fields))
        request.key_id = reference
        changed = await admin.call(request, pb.UpdateKeyResponse)
    _warn_of_per_worker_limits(target, changed.key)
    print_key(changed.key)


def _warn_of_per_worker_limits(target: AdminTarget, key: pb.Key) -> None:
    """Print a warning if a key has limits, and several processes serve the data directory without Redis."""
    if target.gateway:
        return
    # imported here: slow to import, and needed on a database alone
    from umg_grpc.access.multi_worker_limit_rejection import LIMIT_FIELDS, LIMIT_REMEDY
    from umg_grpc.store.process_locks import USAGE_DIRECTORY, count_running

    if not any(key.settings.HasField(name) for name in LIMIT_FIELDS) or load_storage(target.config).redis is not None:
        return
    with suppress(OSError):  # of files of another user
        if (running := count_running(target.data / USAGE_DIRECTORY)) > 1:
            print(
                f"umg: warning: {running} processes serve {target.data} without Redis, and each counts the limits for "
                f"itself: {LIMIT_REMEDY}; the next start with --workers is refused",
                file=sys.stderr,
            )


async def list_all(target: AdminTarget, form: Form) -> None:
    """Print all keys, oldest first."""
    async with opened(target) as admin:
        print_keys(await all_keys(admin), form)


async def all_keys(admin: AdminClient) -> list[pb.Key]:
    """Return all keys, including revoked ones, oldest first."""
    request = pb.ListKeysRequest(page_size=KEYS_PER_PAGE, include_ended=True)
    found = [key async for page in pages(admin, request, pb.ListKeysResponse) for key in page.keys]
    return found[::-1]


async def show(target: AdminTarget, reference: str, form: Form) -> None:
    """Print all settings of one key."""
    async with opened(target) as admin:
        found = await admin.call(pb.GetKeyRequest(key_id=reference), pb.GetKeyResponse)
    print_key(found.key, form)


async def rotate(target: AdminTarget, reference: str, overlap: timedelta) -> None:
    """Replace a key's secret. Print the key, and the new secret last. `overlap`: validity of the old secret."""
    duration = Duration()
    duration.FromTimedelta(overlap)
    async with opened(target) as admin:
        made = await admin.call(pb.RotateKeyRequest(key_id=reference, overlap=duration), pb.RotateKeyResponse)
    print_key(made.key)
    until = time_text(made.key.previous_expire_time)
    print(f"the former secret {made.key.previous_prefix}… is valid until {until}")
    _print_secret(made.secret)


async def show_webhook_secret(target: AdminTarget, reference: str) -> None:
    """Print the secret with which the holder of a key verifies notifications of its video tasks."""
    # imported here: slow to import
    from umg_grpc.access.callback_signatures import CallbackSignatures
    from umg_grpc.access.signing_secret import link_secret

    async with opened(target) as admin:
        found = await admin.call(pb.GetKeyRequest(key_id=reference), pb.GetKeyResponse)
    secret = link_secret(load_storage(target.config).secret, target.data)
    print(CallbackSignatures(secret).signing_secret(found.key.key_id))


async def revoke(target: AdminTarget, reference: str) -> None:
    """Revoke one key and print it."""
    async with opened(target) as admin:
        revoked = await admin.call(pb.RevokeKeyRequest(key_id=reference), pb.RevokeKeyResponse)
    print_key(revoked.key)


def _body(fields: Fields) -> bytes:
    return msgspec.json.encode({"settings": fields})


def _print_secret(secret: str) -> None:
    print(SHOWN_ONCE)
    print(secret)
