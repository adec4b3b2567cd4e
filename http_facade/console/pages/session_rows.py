"""Open sessions of the person at the console, or of another one, and the act that ends one."""

from dataclasses import dataclass

from http_facade.console import form_values
from http_facade.console.page_interface import Form, Visit
from umg_grpc.base.printable_text import printable
from umg_grpc.v1 import pb

MAX_SESSIONS = 50


@dataclass(frozen=True)
class OpenSessionRow:
    """Row of an open session."""

    session: pb.UserSession
    address: str
    agent: str
    is_present: bool
    """Whether it is the session of the visit, which Sign out ends."""


async def session_rows(visit: Visit, user_id: str = "") -> list[OpenSessionRow]:
    """Return the open sessions of a user, newest first; "" for those of the person of the visit."""
    request = pb.ListSessionsRequest(user_id=user_id, page_size=MAX_SESSIONS)
    sessions = (await visit.calls.call(request, pb.ListSessionsResponse)).sessions
    present = visit.rights.caller.session_id
    return [
        OpenSessionRow(each, printable(each.address), printable(each.agent), each.session_id == present)
        for each in sessions
    ]


async def end_session(visit: Visit, form: Form) -> None:
    """End the session that a form names."""
    request = pb.EndSessionRequest(session_id=form_values.text(form, "session"))
    await visit.calls.call(request, pb.EndSessionResponse)
