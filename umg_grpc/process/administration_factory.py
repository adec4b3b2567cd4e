"""Construction of the servicers of the administrative services, and their registration."""

import grpc

from umg_grpc.config.sign_on_section import Sessions
from umg_grpc.process.config_state import ConfigState
from umg_grpc.service.channels.channel_source import RunningChannels
from umg_grpc.service.pipeline.request_validation import validate
from umg_grpc.service.servicers.channel_health_report import ChannelReport
from umg_grpc.service.servicers.validated_administration import (
    AccountServicer,
    AdminServicer,
    AuditServicer,
    ChannelServicer,
    UserServicer,
)
from umg_grpc.service.servicers.validated_alerts import AlertServicer
from umg_grpc.service.servicers.validated_config import ConfigServicer
from umg_grpc.service.servicers.validated_prices import ModelPriceServicer
from umg_grpc.service.servicers.validated_tasks import TaskServicer
from umg_grpc.service.video_tasks.callback_redelivery import CallbackRedelivery
from umg_grpc.service.video_tasks.shared_task_objects import TaskContext
from umg_grpc.store import Store
from umg_grpc.v1 import rpc


class AdministrativeServicers:
    """Servicers of `ADMINISTRATIVE_SERVICES`."""

    def __init__(
        self,
        store: Store,
        report: ChannelReport,
        channels: RunningChannels,
        alerts: AlertServicer,
        tasks: TaskContext,
        sessions: Sessions,
        config_state: ConfigState,
        *,
        refuses_limits: bool,
    ) -> None:
        self._keys = AdminServicer(store, report, refuses_limits=refuses_limits)
        self._accounts = AccountServicer(store, refuses_limits=refuses_limits)
        self._users, self._audit = UserServicer(store, sessions), AuditServicer(store)
        self._channels, self._prices = ChannelServicer(store, channels), ModelPriceServicer(store, channels)
        self._tasks = TaskServicer(store, CallbackRedelivery(store, tasks.watching, tasks.redeliver))
        self._alerts, self._config = alerts, ConfigServicer(store, config_state, validate)

    def register(self, server: grpc.aio.Server) -> None:
        """Add the services to a `grpc.aio` server."""
        rpc.add_AdminServiceServicer_to_server(self._keys, server)
        rpc.add_AccountServiceServicer_to_server(self._accounts, server)
        rpc.add_UserServiceServicer_to_server(self._users, server)
        rpc.add_AuditServiceServicer_to_server(self._audit, server)
        rpc.add_ChannelServiceServicer_to_server(self._channels, server)
        rpc.add_ModelPriceServiceServicer_to_server(self._prices, server)
        rpc.add_TaskServiceServicer_to_server(self._tasks, server)
        rpc.add_AlertServiceServicer_to_server(self._alerts, server)
        rpc.add_ConfigServiceServicer_to_server(self._config, server)
