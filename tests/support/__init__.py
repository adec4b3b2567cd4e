"""Servers, gateways, callers and providers that tests of several directories share."""
