"""Totals of usage by agent, with the calls of unknown agents, which the tables of agents leave out.

The calls of unknown agents are the difference to the totals of keys. Totals of versions that knew no agents need no
change for it, and calls of unknown agents are written once.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Select, Table, cast, literal_column, select, union_all

from umg_grpc.store.usage_tables import AGENT, NAME, OF_AGENT, OF_KEY, SUMS, TOTALS

_GROUP = ("start_micros", *OF_KEY)
_COUNTS = ("requests", "failed", *SUMS)
_UNKNOWN = cast(literal_column("''"), NAME)


def _tables_of(columns: Sequence[str]) -> dict[str, Table]:
    return {each.bucket: each.table for each in TOTALS if each.columns == columns}


def _rows(table: Table, agent: ColumnElement[str], sign: int) -> "Select[Any]":
    counts = [(table.c[name] if sign > 0 else -table.c[name]).label(name) for name in _COUNTS]
    return select(*(table.c[name] for name in _GROUP), agent.label(AGENT), *counts)


def _with_unknown(of_agents: Table, of_keys: Table) -> FromClause:
    """Return the rows of known agents and, for unknown ones, those of all calls and the others with negative counts."""
    of_known = of_agents.c[AGENT]
    parts = _rows(of_agents, of_known, 1), _rows(of_keys, _UNKNOWN, 1), _rows(of_agents, _UNKNOWN, -1)
    return union_all(*parts).subquery()


SOURCES: Mapping[str, FromClause] = MappingProxyType(
    {table.name: _with_unknown(table, _tables_of(OF_KEY)[bucket]) for bucket, table in _tables_of(OF_AGENT).items()}
)
"""Name of a table of totals of agents -> source from which sums are read in its place. Its groups may have no calls."""
