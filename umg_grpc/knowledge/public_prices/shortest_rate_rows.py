"""Rows of rates (prices of a model under conditions) in the shortest form that yields the same prices."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

Credits = Mapping[str, Decimal]
Row = dict[str, Any]


SEARCH_RATE = "search"
"""Member whose price is not for tokens, so that no factor applies to it."""


class Term(NamedTuple):
    """Conditions of a rate: tokens above which it applies (0 for any number), and class of service ("" for any)."""

    above: int = 0
    tier: str = ""


def rate_rows(stated: Mapping[Term, Credits]) -> Iterator[Row]:
    """Yield the rates of a model: for long prompts, for service tiers, and for both together. `stated`: condition ->
    prices; `Term()` has the unconditional ones. A tier whose prices are all one factor becomes a factor, which also
    applies to long prompts.
    """
    base = stated[Term()]
    before = dict[Term, Credits]()
    for above in sorted({term.above for term in stated if not term.tier and term.above}):
        lower = {**base, **_merged(before, above)}
        if changed := _changed(stated[Term(above)], lower):
            before[Term(above)] = changed
            yield {"above": above} | texts(changed)
    longs = {0: base} | {above: {**base, **_merged(before, above)} for above in {term.above for term in before}}
    for tier in dict.fromkeys(term.tier for term in sorted(stated) if term.tier):
        factor = _factor(stated.get(Term(0, tier), {}), base)
        scaled = {above: _times(prices, factor) for above, prices in longs.items()}
        found = {above: _changed(stated.get(Term(above, tier), {}), scaled[above]) for above in sorted(longs)}
        plain = texts(found[0]) | ({"times": text(factor)} if factor != 1 else {})
        if plain:
            yield {"tier": tier} | plain
        for above in sorted(longs):
            reset = {unit: scaled[above][unit] for unit in found[0] if unit in longs[above]}
            if above and (changed := _changed({**reset, **found[above]}, {**scaled[above], **found[0]})):
                yield {"tier": tier, "above": above} | texts(changed)


def _times(prices: Credits, factor: Decimal) -> Credits:
    return {unit: price if unit == SEARCH_RATE else price * factor for unit, price in prices.items()}


def _merged(before: Mapping[Term, Credits], above: int) -> Credits:
    found = dict[str, Decimal]()
    for term in sorted(before):
        if term.above <= above:
            found.update(before[term])
    return found


def _changed(prices: Credits, known: Credits) -> Credits:
    return {unit: price for unit, price in prices.items() if known.get(unit) != price}


def _factor(prices: Credits, base: Credits) -> Decimal:
    ratios = [prices[unit] / base[unit] for unit in prices if base.get(unit) and unit != SEARCH_RATE]
    factor = max(ratios, key=ratios.count, default=Decimal(1))
    return factor if ratios.count(factor) * 2 > len(ratios) and len(text(factor)) <= len("0.75") else Decimal(1)


def texts(prices: Credits) -> dict[str, str]:
    """Return prices as the members of a row."""
    return {unit: text(price) for unit, price in prices.items()}


def text(number: Decimal) -> str:
    """Return a number without an exponent and without trailing zeros."""
    return f"{number.normalize():f}"
