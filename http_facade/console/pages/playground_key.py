"""Key of the playground for the person of a session: where it may be made, the key itself, and its later end."""

import secrets

import msgspec
from google.protobuf.field_mask_pb2 import FieldMask

from http_facade.console import form_values
from http_facade.console.object_names import OfferedAccounts
from http_facade.console.page_interface import FileContent, Form, Visit
from http_facade.console.pages.key_pages import load_new_key
from umg_grpc.v1 import pb

FILE_NAME, MAX_NAME_CHARACTERS = "playground-key.json", 80


async def load_choices(visit: Visit) -> FileContent:
    """Return the projects in which the person may make a key for the playground, as JSON; none where there are too many
    for a list.
    """
    may_create = not visit.rights.is_holder and visit.rights.may(pb.PERMISSION_KEYS_WRITE)
    offered = (await load_new_key(visit)).projects if may_create else OfferedAccounts({})
    return _json(
        {
            "name": visit.rights.caller.name,
            "may_create": may_create,
            "without_project": offered.may_be_none,
            "is_typed": offered.is_typed,
            "projects": [{"id": account_id, "name": name} for account_id, name in offered.names.items()],
        }
    )


async def create_key_of_session(visit: Visit, form: Form) -> FileContent:
    """Create a key that ends with the session, and return its secret once."""
    name = f"playground of {visit.rights.caller.name[:MAX_NAME_CHARACTERS]} {secrets.token_hex(3)}"
    settings = pb.KeySettings(name=name, project_id=form_values.text(form, "project"))
    request = pb.CreateKeyRequest(settings=settings, ends_with_session=True)
    made = await visit.calls.call(request, pb.CreateKeyResponse)
    return _json({"key_id": made.key.key_id, "secret": made.secret})


async def keep_key_of_session(visit: Visit, form: Form) -> FileContent:
    """Move the end of the key to that of the session, which this visit has moved."""
    settings = pb.KeySettings(expire_time=visit.rights.caller.session_expire_time)
    mask = FieldMask(paths=["expire_time"])
    request = pb.UpdateKeyRequest(key_id=form_values.text(form, "key_id"), settings=settings, update_mask=mask)
    changed = await visit.calls.call(request, pb.UpdateKeyResponse)
    return _json({"key_id": changed.key.key_id})


def _json(content: object) -> FileContent:
    return FileContent(FILE_NAME, "application/json", msgspec.json.encode(content).decode())
