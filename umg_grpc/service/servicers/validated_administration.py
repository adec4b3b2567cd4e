"""Servicers of the administrative services of `umg.v1`, whose requests are checked by the schema."""

from umg_grpc.config.sign_on_section import Sessions as SessionTimes
from umg_grpc.service.channels.channel_source import ChannelSource
from umg_grpc.service.pipeline.request_validation import validate
from umg_grpc.service.servicers.account_administration import AccountAdministration
from umg_grpc.service.servicers.administration import Administration
from umg_grpc.service.servicers.audit_report import AuditReport
from umg_grpc.service.servicers.caller_reports import ChannelList
from umg_grpc.service.servicers.channel_administration import ChannelAdministration
from umg_grpc.service.servicers.user_administration import UserAdministration
from umg_grpc.store import Store
from umg_grpc.v1 import rpc


class AdminServicer(Administration, rpc.AdminServiceServicer):
    """Servicer of `umg.v1.AdminService`: keys, usage, records of calls, channels."""

    def __init__(self, store: Store, channels: ChannelList, *, refuses_limits: bool) -> None:
        """Create a servicer. `refuses_limits`: reject keys with limits, which workers count separately."""
        super().__init__(store, channels, validate, refuses_limits=refuses_limits)


class AccountServicer(AccountAdministration, rpc.AccountServiceServicer):
    """Servicer of `umg.v1.AccountService`: organisations and projects."""

    def __init__(self, store: Store, *, refuses_limits: bool) -> None:
        """Create a servicer. `refuses_limits`: reject limits, which workers count separately."""
        super().__init__(store, validate, refuses_limits=refuses_limits)


class UserServicer(UserAdministration, rpc.UserServiceServicer):
    """Servicer of `umg.v1.UserService`: people and service accounts."""

    def __init__(self, store: Store, sessions: SessionTimes) -> None:
        """Create a servicer. `sessions`: times after which sessions end."""
        super().__init__(store, sessions, validate)


class ChannelServicer(ChannelAdministration, rpc.ChannelServiceServicer):
    """Servicer of `umg.v1.ChannelService`: details, checks and settings of channels."""

    def __init__(self, store: Store, source: ChannelSource) -> None:
        super().__init__(store, source, validate)


class AuditServicer(AuditReport, rpc.AuditServiceServicer):
    """Servicer of `umg.v1.AuditService`: the audit log."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, validate)
