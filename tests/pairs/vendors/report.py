"""Tables of outcomes, and lists of the wrong ones."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from tests.pairs.vendors.runner import OUTCOMES, Result

WIDTH = 20
EXAMPLES = 3


def table(results: Iterable[Result]) -> str:
    """Return the outcomes by vendor, with the number of the wrong ones."""
    by_vendor: dict[str, Counter[str]] = defaultdict(Counter)
    for result in results:
        for vendor in (result.model.vendor, "all"):
            by_vendor[vendor][result.outcome] += 1
            by_vendor[vendor]["wrong"] += bool(result.wrong)
            by_vendor[vendor]["calls"] += 1
    columns = (*OUTCOMES, "wrong", "calls")
    lines = [" " * WIDTH + "".join(f"{name:>19}" for name in columns)]
    rows = sorted(by_vendor.items(), key=lambda item: (item[0] == "all", -item[1]["wrong"]))
    lines += [f"{vendor:{WIDTH}}" + "".join(f"{counts[name]:>19}" for name in columns) for vendor, counts in rows]
    return "\n".join(lines)


def failures(results: Iterable[Result], examples: int = EXAMPLES, *, shows_sent: bool = False) -> str:
    """Return the outcomes that are not right, by kind, each with some calls. `examples`: their number, 0 for all."""
    kinds: dict[tuple[str, str, str], list[Result]] = defaultdict(list)
    for result in results:
        if result.wrong or result.outcome == "unchanged":
            place = "same format" if result.protocol == result.face else "translated"
            kinds[result.outcome, result.wrong or result.message.partition(" ")[0], place].append(result)
    lines = []
    for (outcome, wrong, place), found in sorted(kinds.items(), key=lambda item: -len(item[1])):
        lines.append(f"{len(found):5}  {outcome}: {wrong} ({place})")
        lines += _examples(found[: examples or None], shows_sent=shows_sent)
    return "\n".join(lines)


def _examples(found: Sequence[Result], *, shows_sent: bool) -> list[str]:
    lines = []
    for result in found:
        named = f"  [{result.dropped}]" if result.dropped else ""
        message = f"  {result.message}" if result.message else ""
        lines.append(f"         {result.id} -> {result.protocol or 'none'}{named}{message}"[:400])
        if shows_sent and result.sent:
            lines.append(f"           {result.sent}")
    return lines
