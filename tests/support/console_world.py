"""Gateway with two projects and the browsers of people with roles in them, for tests of the console."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.console_browser import Browser
from tests.support.gateways import SANDBOX, Running, running
from umg_grpc.access.account_levels import PROJECT_KIND
from umg_grpc.access.accounts import Accounts
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.access.principals import Membership, Role
from umg_grpc.access.users import SERVICE_ACCOUNT, Users

CONSOLE_CONFIG = f"{SANDBOX}  - {{name: videos, protocols: [sandbox], pace: 0, models: [vidA-2]}}\n"
"""Config of the tests of the console, with a channel of videos besides."""


@dataclass(frozen=True)
class World:
    gateway: Running
    owner: Browser
    projects: dict[str, str]
    stack: AsyncExitStack
    people: list[str] = field(default_factory=list)

    async def browser(self) -> Browser:
        """Return a browser without a session."""
        return await self.stack.enter_async_context(Browser(self.gateway.url))

    async def person(self, role: Role, account: str) -> Browser:
        """Return the browser of a service account with a role, as its key opens a session."""
        store = self.gateway.service.store
        name = f"{role} {len(self.people)}"
        self.people.append(name)
        made = {"name": name, "memberships": [Membership(account, role)]}
        user = await Users(store).create(SERVICE_ACCOUNT, made)  # type: ignore[arg-type]
        _, secret = await ApiKeys(store).create(f"key of {name}", user_id=user.user_id)
        return await (await self.browser()).sign_in(secret)


@asynccontextmanager
async def console_world(folder: Path, config: str = CONSOLE_CONFIG) -> AsyncIterator[World]:
    """Run a gateway with the projects `mine` and `other`, and sign its owner in."""
    async with AsyncExitStack() as stack:
        gateway = await stack.enter_async_context(running(config, folder))
        accounts = Accounts(gateway.service.store)
        projects = {
            name: (await accounts.create(PROJECT_KIND, {"name": name})).account_id for name in ("mine", "other")
        }
        owner = await stack.enter_async_context(Browser(gateway.url))
        yield World(gateway, await owner.sign_in(), projects, stack)
