"""Client of the administration service in the process of a command, on the database of a config."""

import getpass
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from google.protobuf.message import Message

from umg_grpc.access.caller_identity import Caller
from umg_grpc.cli.admin_client import ResponseT, method_name, service_name
from umg_grpc.cli.common_flags import AdminTarget
from umg_grpc.cli.database_connection import opened_database
from umg_grpc.process.config_loading import load_storage
from umg_grpc.service.alerts.alert_receiver_interface import AlertReceiverClient
from umg_grpc.service.pipeline.call_state import CURRENT_CALL, Arrival, Call
from umg_grpc.service.servicers.account_administration import AccountAdministration
from umg_grpc.service.servicers.administration import Administration
from umg_grpc.service.servicers.alert_administration import AlertAdministration
from umg_grpc.service.servicers.audit_report import AuditReport
from umg_grpc.service.servicers.task_administration import TaskAdministration
from umg_grpc.service.servicers.user_administration import UserAdministration
from umg_grpc.service.video_tasks.callback_redelivery import CallbackRedelivery
from umg_grpc.store import Store
from umg_grpc.store.alert_table import AlertTable
from umg_grpc.v1 import pb

ALERTS_PROCESS = "umg"
"""Name of a command as a process that works on alerts. It evaluates no rules."""


class LocalAdmin:
    """Administration client that runs the services in the command's process, with an administrator's permissions."""

    def __init__(self, services: Mapping[str, Callable[[], object]]) -> None:
        """Create a client. `services`: full name of a service -> function that returns an object with its methods."""
        self._services = services

    @classmethod
    @asynccontextmanager
    async def opened(cls, target: AdminTarget) -> "AsyncGenerator[LocalAdmin, None]":
        """Yield a client that works on the database of the target's config, which must exist. Raise CommandError."""
        async with AsyncExitStack() as stack:
            storage = load_storage(target.config)
            database = opened_database(storage.database, target.data)
            store = await stack.enter_async_context(database)
            receivers = ConfigReceivers(target, stack)
            table = AlertTable(store, ALERTS_PROCESS)
            alerts = partial(AlertAdministration, store, table, receivers, check_change, store.clock.now)
            yield cls(
                {
                    "umg.v1.AdminService": partial(Administration, store, NoChannels(), check_change),
                    "umg.v1.AlertService": alerts,
                    "umg.v1.ChannelService": partial(_channel_service, store, target, stack),
                    "umg.v1.ModelPriceService": partial(_price_service, store, target, stack),
                    "umg.v1.AccountService": partial(AccountAdministration, store, check_change),
                    "umg.v1.UserService": partial(UserAdministration, store, storage.sessions, check_change),
                    "umg.v1.AuditService": partial(AuditReport, store, check_change),
                    "umg.v1.ConfigService": partial(_config_service, store, target),
                    "umg.v1.TaskService": partial(TaskAdministration, store, CallbackRedelivery(store), check_change),
                }
            )

    async def call(self, request: Message, kind: type[ResponseT]) -> ResponseT:
        name = method_name(request)
        call = Call(Arrival(name, {}, trusted=True, request_id="umg"))
        call.known_caller = Caller("", operator_name(), (), None, None, administrator=True)
        CURRENT_CALL.set(call)
        response: ResponseT = await getattr(self._services[service_name(request)](), name)(request, None)
        return response


class ConfigReceivers:
    """Receivers of alerts in the target's config, which is read when one is tested: it may need secrets."""

    def __init__(self, target: AdminTarget, stack: AsyncExitStack) -> None:
        self._target = target
        self._stack = stack

    def find(self, name: str) -> AlertReceiverClient | None:
        from umg_grpc.process.config_loading import load
        from umg_grpc.service.alerts.alert_receiver_clients import ReceiverClients

        config = load(self._target.config, self._target.data)
        return ReceiverClients.of_command(config.alerts, config.proxies, self._stack).find(name)


def _channel_service(store: Store, target: AdminTarget, stack: AsyncExitStack) -> object:
    """Return the administration of channels, which reads the target's config. Its modules are slow to import."""
    from umg_grpc.cli.config_channels import ConfigChannels
    from umg_grpc.service.servicers.channel_administration import ChannelAdministration

    return ChannelAdministration(store, ConfigChannels(store, target, stack), check_change)


def _price_service(store: Store, target: AdminTarget, stack: AsyncExitStack) -> object:
    """Return the administration of prices, which reads the target's config. Its modules are slow to import."""
    from umg_grpc.cli.config_channels import ConfigChannels
    from umg_grpc.service.servicers.model_price_administration import ModelPriceAdministration

    return ModelPriceAdministration(store, ConfigChannels(store, target, stack), check_change)


def _config_service(store: Store, target: AdminTarget) -> object:
    """Return the service of the config, which is read as a start of the gateway would read it."""
    from umg_grpc.process.config_loading import load
    from umg_grpc.process.config_state import ConfigState
    from umg_grpc.service.servicers.config_report import ConfigReport

    config = load(target.config, target.data)
    return ConfigReport(store, ConfigState(config, os.environ, store.clock.now), check_change)


def operator_name() -> str:
    """Return the name of the account at the operating system, for the audit log."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without a name for its user id
        return f"uid {os.getuid()}"


class NoChannels:
    """Source of channel states for the administration service of a command, which calls no providers: an empty list."""

    async def list(self) -> pb.ListChannelsResponse:
        return pb.ListChannelsResponse()


async def check_change(request: Message) -> None:
    """Raise UmgError if a request to create or change an object breaks the schema. Other requests are not checked: they
    only name objects or calls, and the rules are slow to import.
    """
    if method_name(request).startswith(("Create", "Update", "Rotate")):
        from umg_grpc.service.pipeline.schema_validation import check

        check(request)
