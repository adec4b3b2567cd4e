"""Totals of usage by agent. The tables of agents leave out calls of unknown agents, which are computed as the
difference to the totals of all calls. So each of these calls is written once, and totals of versions without agents
need no change.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Select, Table, cast, literal_column, select, union_all

from umg_grpc.store.usage_tables import AGENT_COLUMN, NAME_TYPE, TOTAL_TABLES, Totals
from umg_grpc.store.usage_totals import ADDED_COLUMNS

_UNKNOWN = cast(literal_column("''"), NAME_TYPE)


def _with_unknown(of_agents: Totals) -> FromClause:
    """Return the rows of known agents, and for unknown ones all calls, and known agents' calls with negative counts."""
    others = tuple(name for name in of_agents.columns if name != AGENT_COLUMN)
    [of_all] = [each.table for each in TOTAL_TABLES if (each.bucket, each.columns) == (of_agents.bucket, others)]

    def rows(table: Table, agent: ColumnElement[str], sign: int) -> "Select[Any]":
        counts = [(table.c[name] if sign > 0 else -table.c[name]).label(name) for name in ADDED_COLUMNS]
        return select(*(table.c[name] for name in ("start_micros", *others)), agent.label(AGENT_COLUMN), *counts)

    known = of_agents.table
    parts = rows(known, known.c[AGENT_COLUMN], 1), rows(of_all, _UNKNOWN, 1), rows(known, _UNKNOWN, -1)
    return union_all(*parts).subquery()


TOTAL_SOURCES: Mapping[str, FromClause] = MappingProxyType(
    {each.table.name: _with_unknown(each) for each in TOTAL_TABLES if each.has_agents}
)
"""Name of a table of totals of agents -> source from which sums are read in its place. Its groups may have no calls."""
