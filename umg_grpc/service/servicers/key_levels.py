"""Project and organisation of a key, as messages. Their names are for callers that may see them."""

from umg_grpc.access.access_control import Authority
from umg_grpc.access.account_levels import AccountLevel
from umg_grpc.access.api_keys import Key
from umg_grpc.access.role_permissions import Extent
from umg_grpc.service.servicers.account_administration import KIND_VALUES
from umg_grpc.service.servicers.budget_messages import balance_messages, present_accounts
from umg_grpc.store import Store
from umg_grpc.store.budget_accounts import BudgetAccounts
from umg_grpc.store.database_time import utc_of
from umg_grpc.v1 import pb


class KeyLevels:
    """Reader of the levels above a key."""

    def __init__(self, store: Store) -> None:
        self._budgets, self._clock = BudgetAccounts(store), store.clock

    async def messages(self, key: Key, authority: Authority) -> list[pb.KeyLevel]:
        """Return the project of a key and its organisation, if there are any."""
        now, periods = utc_of(self._clock), dict[str, int]()
        for level in key.levels:
            periods |= present_accounts(level.account_id, level.budgets, now)
        balances = await self._budgets.balances(periods)
        found = list[pb.KeyLevel]()
        for level in key.levels:
            message = _message(level)
            message.balances.extend(balance_messages(level.account_id, level.budgets, balances, now))
            if authority.extent(pb.PERMISSION_ACCOUNTS_READ, level.account_id) is not Extent.NONE:
                message.account_id, message.name = level.account_id, level.name
            found.append(message)
        return found


def _message(level: AccountLevel) -> pb.KeyLevel:
    return pb.KeyLevel(
        kind=KIND_VALUES[level.kind],
        model_patterns=level.model_patterns,
        requests_per_minute=level.requests_per_minute,
        tokens_per_minute=level.tokens_per_minute,
        concurrent_requests=level.concurrent_requests,
    )
