"""Thin servicers of `umg.v1`: validate, admit, route, delegate, answer."""
