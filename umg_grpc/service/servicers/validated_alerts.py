"""Servicer of `umg.v1.AlertService`: the class in `alert_administration.py`, with the registration of gRPC."""

from umg_grpc.service.servicers.alert_administration import AlertAdministration
from umg_grpc.v1 import rpc


class AlertServicer(AlertAdministration, rpc.AlertServiceServicer):
    """Servicer of `umg.v1.AlertService`: alerts, and tests of their receivers."""
