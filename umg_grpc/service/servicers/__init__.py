"""Servicers of `umg.v1`, one module for each service."""
