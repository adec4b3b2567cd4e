"""Servicer of `umg.v1.ConfigService`: the class in `config_report.py`, with the registration of gRPC."""

from umg_grpc.service.servicers.config_report import ConfigReport
from umg_grpc.v1 import rpc


class ConfigServicer(ConfigReport, rpc.ConfigServiceServicer):
    """Servicer of `umg.v1.ConfigService`: the config in force."""
