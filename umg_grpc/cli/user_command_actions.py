"""Implementation of `umg users` and `umg audit`, in a database or at a gateway."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from umg_grpc.cli.account_tables import print_events, print_sessions, print_user, print_users
from umg_grpc.cli.admin_client import pages
from umg_grpc.cli.admin_connection import opened
from umg_grpc.cli.common_flags import AdminTarget
from umg_grpc.cli.text_tables import Form, print_line
from umg_grpc.service.servicers.timestamps import timestamp
from umg_grpc.v1 import pb
from umg_grpc.wire import account_api_json as bodies

USERS_PER_PAGE = 1000
EVENTS_PER_PAGE = 1000

Fields = Mapping[str, object]
"""Settings of a user under their names in JSON."""


async def create(target: AdminTarget, kind: str, fields: Fields) -> None:
    """Create a user of a kind. Print it."""
    request = bodies.decode_create_user(msgspec.json.encode({"kind": kind, "settings": fields}))
    async with opened(target) as admin:
        made = await admin.call(request, pb.CreateUserResponse)
    print_user(made.user)


async def update(target: AdminTarget, reference: str, fields: Fields) -> None:
    """Change settings of the user with the id, e-mail address or name `reference`. Print it."""
    request = bodies.decode_update_user(msgspec.json.encode({"settings": fields}))
    request.user_id = reference
    async with opened(target) as admin:
        changed = await admin.call(request, pb.UpdateUserResponse)
    print_user(changed.user)


async def show(target: AdminTarget, reference: str, form: Form) -> None:
    """Print one user in a form."""
    async with opened(target) as admin:
        found = await admin.call(pb.GetUserRequest(user_id=reference), pb.GetUserResponse)
    print_user(found.user, form)


async def list_all(target: AdminTarget, form: Form, *, disabled: bool) -> None:
    """Print all users by name. `disabled`: also disabled ones."""
    request = pb.ListUsersRequest(include_disabled=disabled, page_size=USERS_PER_PAGE)
    async with opened(target) as admin:
        found = [user async for page in pages(admin, request, pb.ListUsersResponse) for user in page.users]
    print_users(found, form)


async def list_sessions(target: AdminTarget, reference: str, form: Form) -> None:
    """Print the open sessions of a user; "" for the caller."""
    request = pb.ListSessionsRequest(user_id=reference, page_size=USERS_PER_PAGE)
    async with opened(target) as admin:
        found = [each async for page in pages(admin, request, pb.ListSessionsResponse) for each in page.sessions]
    print_sessions(found, form)


async def end_session(target: AdminTarget, session_id: str) -> None:
    """End a session."""
    async with opened(target) as admin:
        await admin.call(pb.EndSessionRequest(session_id=session_id), pb.EndSessionResponse)
    print_line(f"{session_id} has ended")


async def list_events(target: AdminTarget, form: Form, since: datetime | None, limit: int, *, refused: bool) -> None:
    """Print up to `limit` of the newest events."""
    async with opened(target) as admin:
        request = pb.ListAuditEventsRequest(start_time=timestamp(since), page_size=limit, refused_only=refused)
        page = await admin.call(request, pb.ListAuditEventsResponse)
    print_events(page.events, form)


async def export_events(target: AdminTarget, since: datetime | None) -> None:
    """Print all events since a time as JSON lines, newest first."""
    request = pb.ListAuditEventsRequest(start_time=timestamp(since), page_size=EVENTS_PER_PAGE)
    async with opened(target) as admin:
        async for page in pages(admin, request, pb.ListAuditEventsResponse):
            print_events(page.events, Form.JSONL)
