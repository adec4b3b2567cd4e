"""Implementation of `umg organizations` and `umg projects`, in a database or at a gateway."""

from collections.abc import Mapping

import msgspec

from umg_grpc.cli.account_tables import print_account, print_accounts
from umg_grpc.cli.admin_client import pages
from umg_grpc.cli.admin_connection import opened
from umg_grpc.cli.common_flags import AdminTarget
from umg_grpc.cli.text_tables import Form
from umg_grpc.v1 import pb
from umg_grpc.wire import account_api_json as bodies

ACCOUNTS_PER_PAGE = 1000
KIND_NUMBERS = {"organization": pb.ACCOUNT_KIND_ORGANIZATION, "project": pb.ACCOUNT_KIND_PROJECT}

Fields = Mapping[str, object]
"""Settings of an account under their names in JSON."""


async def create(target: AdminTarget, kind: str, fields: Fields) -> None:
    """Create an account. Print its settings."""
    request = bodies.decode_create_account(_body(fields))
    request.kind = KIND_NUMBERS[kind]
    async with opened(target) as admin:
        made = await admin.call(request, pb.CreateAccountResponse)
    print_account(made.account)


async def update(target: AdminTarget, kind: str, reference: str, fields: Fields) -> None:
    """Change settings of the account with the id or name `reference`. Print them all."""
    request = bodies.decode_update_account(_body(fields))
    request.account_id, request.kind = reference, KIND_NUMBERS[kind]
    async with opened(target) as admin:
        changed = await admin.call(request, pb.UpdateAccountResponse)
    print_account(changed.account)


async def show(target: AdminTarget, kind: str, reference: str, form: Form) -> None:
    """Print all settings of one account in a form."""
    async with opened(target) as admin:
        request = pb.GetAccountRequest(account_id=reference, kind=KIND_NUMBERS[kind])
        found = await admin.call(request, pb.GetAccountResponse)
    print_account(found.account, form)


async def set_closed(target: AdminTarget, kind: str, reference: str, *, closed: bool) -> None:
    """Close or open one account. Print it."""
    async with opened(target) as admin:
        request = pb.SetAccountClosedRequest(account_id=reference, kind=KIND_NUMBERS[kind], closed=closed)
        changed = await admin.call(request, pb.SetAccountClosedResponse)
    print_account(changed.account)


async def list_all(target: AdminTarget, kind: str, form: Form, *, closed: bool) -> None:
    """Print all accounts of a kind by name. `closed`: also closed ones."""
    request = pb.ListAccountsRequest(kind=KIND_NUMBERS[kind], include_closed=closed, page_size=ACCOUNTS_PER_PAGE)
    async with opened(target) as admin:
        found = [each async for page in pages(admin, request, pb.ListAccountsResponse) for each in page.accounts]
    print_accounts(found, form)


def _body(fields: Fields) -> bytes:
    return msgspec.json.encode({"settings": fields})
