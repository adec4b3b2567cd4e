"""Rolling upgrade of two gateways behind nginx, under load: no call is lost."""
