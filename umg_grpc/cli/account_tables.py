"""Organisations, projects, users and the audit log as commands print them."""

from collections.abc import Iterable, Sequence

from umg_grpc.base.micro_credits import credits_text
from umg_grpc.cli.text_tables import Column, Fit, Form, print_fields, print_table
from umg_grpc.cli.time_texts import time_text
from umg_grpc.v1 import pb
from umg_grpc.wire.administration_api_json import OPERATION_NAMES, PERIOD_NAMES
from umg_grpc.wire.protobuf_json import enum_names, to_json

TITLE_WIDTH = 14
ROLE_NAMES = enum_names(pb.UserRole.DESCRIPTOR)
USER_KIND_NAMES = enum_names(pb.UserKind.DESCRIPTOR)
ACTOR_KIND_NAMES = enum_names(pb.AuditActorKind.DESCRIPTOR)

ACCOUNT_COLUMNS = (
    Column("id"),
    Column("name", 1, Fit.FOLDED),
    Column("state", 2),
    Column("budgets", 2, Fit.LISTED),
    Column("organization", 3),
    Column("models", 4, Fit.LISTED),
    Column("rpm", 5, is_number=True),
    Column("tpm", 6, is_number=True),
    Column("created", 7),
)
USER_COLUMNS = (
    Column("id"),
    Column("name", 1, Fit.FOLDED),
    Column("kind", 3),
    Column("email", 3),
    Column("roles", 1, Fit.LISTED),
    Column("state", 2),
    Column("last sign-in", 4),
)
SESSION_COLUMNS = (
    Column("id"),
    Column("opened by", 3),
    Column("signed in", 2),
    Column("last use"),
    Column("ends", 3),
    Column("address", 2),
    Column("program", 4, Fit.FOLDED),
)
AUDIT_COLUMNS = (
    Column("time"),
    Column("actor", 1, Fit.FOLDED),
    Column("act", 1),
    Column("object", 1),
    Column("name", 2, Fit.FOLDED),
    Column("outcome", 2),
    Column("address", 4),
    Column("before", 5, Fit.CUT),
    Column("after", 5, Fit.CUT),
)


def print_accounts(accounts: Sequence[pb.Account], form: Form) -> None:
    """Print organisations or projects as a table."""
    rows = (
        (
            account.account_id,
            account.settings.name,
            "closed" if account.HasField("close_time") else "open",
            ", ".join(map(balance_text, account.balances)) or "none",
            account.settings.organization_id,
            ", ".join(account.settings.model_patterns) or "all",
            str(account.settings.requests_per_minute or ""),
            str(account.settings.tokens_per_minute or ""),
            time_text(account.create_time),
        )
        for account in accounts
    )
    print_table(ACCOUNT_COLUMNS, rows, form, map(to_json, accounts))


def print_account(account: pb.Account, form: Form = Form.TABLE) -> None:
    """Print all settings of an organisation or a project in a form, one below the other in a text."""
    if not form.is_text:
        print_accounts([account], form)
        return
    settings = account.settings
    tags = ", ".join(f"{name}={value}" for name, value in sorted(settings.tags.items()))
    fields = {
        "id": account.account_id,
        "name": settings.name,
        "state": f"closed at {time_text(account.close_time)}" if account.HasField("close_time") else "open",
        "organization": settings.organization_id,
        "models": ", ".join(settings.model_patterns) or "all",
        "operations": ", ".join(OPERATION_NAMES[each] for each in settings.operations) or "all",
        "channels": ", ".join(settings.channels) or "all",
        "rpm": str(settings.requests_per_minute or "no limit"),
        "tpm": str(settings.tokens_per_minute or "no limit"),
        "concurrency": str(settings.concurrent_requests or "no limit"),
        "budgets": ", ".join(map(balance_text, account.balances)) or "none",
        "tags": tags or "none",
        "created": time_text(account.create_time),
    }
    print_fields([(title, text) for title, text in fields.items() if text], TITLE_WIDTH, form)


def balance_text(balance: pb.BudgetBalance) -> str:
    """Return a budget with its spent part, for example `1.50 of 100 a month`."""
    budget, spent = balance.budget, credits_text(balance.spent_micro_credits)
    period = f" a {PERIOD_NAMES[budget.period]}" if budget.period else ""
    return f"{spent} of {credits_text(budget.micro_credits)}{period}{' (soft)' if budget.soft else ''}"


def print_users(users: Sequence[pb.User], form: Form) -> None:
    """Print users as a table."""
    rows = (
        (
            user.user_id,
            user.settings.name,
            USER_KIND_NAMES.get(user.kind, ""),
            user.settings.email,
            _roles(user),
            "disabled" if user.settings.disabled else "active",
            time_text(user.last_sign_in_time) if user.HasField("last_sign_in_time") else "never",
        )
        for user in users
    )
    print_table(USER_COLUMNS, rows, form, map(to_json, users))


def print_user(user: pb.User, form: Form = Form.TABLE) -> None:
    """Print all settings of a user in a form, one below the other in a text."""
    if not form.is_text:
        print_users([user], form)
        return
    fields = {
        "id": user.user_id,
        "name": user.settings.name,
        "kind": USER_KIND_NAMES.get(user.kind, ""),
        "email": user.settings.email,
        "roles": _roles(user),
        "state": "disabled" if user.settings.disabled else "active",
        "issuer": user.issuer,
        "subject": user.subject,
        "created": time_text(user.create_time),
        "last sign-in": time_text(user.last_sign_in_time) if user.HasField("last_sign_in_time") else "never",
    }
    print_fields([(title, text) for title, text in fields.items() if text], TITLE_WIDTH, form)


def _roles(user: pb.User) -> str:
    given = [(membership, "") for membership in user.settings.memberships]
    given += [(membership, " by its issuer") for membership in user.issuer_memberships]
    texts = (
        f"{ROLE_NAMES.get(each.role, '')} {f'in {each.account_id}' if each.account_id else 'of the gateway'}{source}"
        for each, source in given
    )
    return ", ".join(texts) or "none"


def print_sessions(sessions: Sequence[pb.UserSession], form: Form) -> None:
    """Print open sessions as a table."""
    rows = (
        (
            session.session_id,
            session.key_id or "issuer",
            time_text(session.create_time),
            time_text(session.last_use_time),
            time_text(session.idle_expire_time),
            session.address,
            session.agent,
        )
        for session in sessions
    )
    print_table(SESSION_COLUMNS, rows, form, map(to_json, sessions))


def print_events(events: Iterable[pb.AuditEvent], form: Form) -> None:
    """Print events of the audit log as a table, or as objects."""
    events = list(events)
    rows = (
        (
            time_text(event.time),
            f"{ACTOR_KIND_NAMES.get(event.actor_kind, '')} {event.actor_name or event.actor_id}".strip(),
            event.method.rpartition("/")[2],
            event.object_id,
            event.object_name,
            "refused" if event.refused else "done",
            event.address,
            event.before_json,
            event.after_json,
        )
        for event in events
    )
    print_table(AUDIT_COLUMNS, rows, form, map(to_json, events))
