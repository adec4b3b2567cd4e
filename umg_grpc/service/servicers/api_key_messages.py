"""Conversion of API keys between messages of `umg.v1` and the fields of the database."""

from collections.abc import Collection, Iterable
from datetime import UTC

from umg_grpc.access.api_keys import Key
from umg_grpc.access.key_settings import KeyFields, NamedKeyFields
from umg_grpc.service.servicers.budget_messages import budget_messages, budget_of, stored_period
from umg_grpc.service.servicers.timestamps import timestamp
from umg_grpc.service.servicers.update_masks import check_mask
from umg_grpc.store.budget_accounts import NO_BALANCE, Balance
from umg_grpc.v1 import pb
from umg_grpc.wire.administration_api_json import OPERATION_NAMES, OPERATION_VALUES, PERIOD_VALUES


def changes_of(settings: pb.KeySettings, paths: Collection[str]) -> NamedKeyFields:
    """Return the fields that the mask `paths` selects. Raise UmgError(INVALID_FIELD) for an empty or unknown path."""
    fields: NamedKeyFields = {"name": settings.name, **fields_of(settings)}
    check_mask(paths, fields)
    return {name: value for name, value in fields.items() if name in paths}  # type: ignore[return-value]  # some of its keys


def fields_of(settings: pb.KeySettings) -> KeyFields:
    """Return the settings of a key as fields of the database, without the key's name. An unknown number of an enum
    becomes its own name, which `check_fields` refuses.
    """
    return {
        "model_patterns": list(settings.model_patterns),
        "operations": [OPERATION_NAMES.get(operation, str(operation)) for operation in settings.operations],
        "channels": list(settings.channels),
        "administrator": settings.administrator,
        "requests_per_minute": settings.requests_per_minute if settings.HasField("requests_per_minute") else None,
        "tokens_per_minute": settings.tokens_per_minute if settings.HasField("tokens_per_minute") else None,
        "concurrent_requests": settings.concurrent_requests if settings.HasField("concurrent_requests") else None,
        "budget_micro_credits": settings.budget_micro_credits if settings.HasField("budget_micro_credits") else None,
        "budget_period": stored_period(settings.budget_period),
        "expire_time": settings.expire_time.ToDatetime(UTC) if settings.HasField("expire_time") else None,
        "show_route": settings.show_route,
        "owner": settings.owner,
        "tags": dict(settings.tags),
        "budgets": [budget_of(budget) for budget in settings.budgets],
        "project_id": settings.project_id,
        "user_id": settings.user_id,
    }


def message_of(key: Key, balance: Balance = NO_BALANCE, balances: Iterable[pb.BudgetBalance] = ()) -> pb.Key:
    """Return a key as a message, with the balance of `budget_micro_credits` and those of its other budgets."""
    return pb.Key(
        spent_micro_credits=balance.spent,
        reserved_micro_credits=balance.held,
        key_id=key.key_id,
        prefix=key.prefix,
        settings=pb.KeySettings(
            name=key.name,
            model_patterns=key.model_patterns,
            operations=[OPERATION_VALUES[name] for name in key.operations],
            channels=key.channels,
            administrator=key.administrator,
            requests_per_minute=key.requests_per_minute,
            tokens_per_minute=key.tokens_per_minute,
            concurrent_requests=key.concurrent_requests,
            budget_micro_credits=key.budget_micro_credits,
            budget_period=PERIOD_VALUES[key.budget_period or "none"],
            expire_time=timestamp(key.expire_time),
            show_route=key.show_route,
            owner=key.owner,
            tags=key.tags,
            budgets=budget_messages(key.budgets),
            project_id=key.project_id,
            user_id=key.user_id,
        ),
        create_time=timestamp(key.create_time),
        revoke_time=timestamp(key.revoke_time),
        last_use_time=timestamp(key.last_use_time),
        previous_prefix=key.previous_prefix,
        previous_expire_time=timestamp(key.previous_expire_time),
        balances=balances,
    )
