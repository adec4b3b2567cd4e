"""Reports of the results of checks: tables for terminals and documents, and JUnit XML."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from umg_conformance.check_runner import Outcome, Result


@dataclass(frozen=True)
class FaceSummary:
    """Numbers of passed, failed and skipped checks of one wire format."""

    face: str
    passed: int
    failed: int
    differing: int
    skipped: int


def summaries(results: Iterable[Result]) -> list[FaceSummary]:
    """Return the numbers of results of each wire format, in the order of the results."""
    faces: dict[str, Counter[str]] = {}
    for result in results:
        counts = faces.setdefault(result.face, Counter())
        recommended = result.outcome is Outcome.FAILED and not result.fails_run
        counts["recommended" if recommended else result.outcome.value] += 1
    return [
        FaceSummary(face, counts["passed"], counts["failed"], counts["recommended"], counts["skipped"])
        for face, counts in faces.items()
    ]


def table(results: Sequence[Result]) -> str:
    """Return a text table with one row for each wire format, followed by the failed and the skipped checks."""
    rows = [("face", "passed", "failed", "recommended only", "skipped")]
    rows += [(s.face, str(s.passed), str(s.failed), str(s.differing), str(s.skipped)) for s in summaries(results)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.rjust(width) if column else cell.ljust(width) for column, (cell, width) in enumerate(cells))
        for cells in (list(zip(row, widths, strict=True)) for row in rows)
    ]
    return "\n".join([*lines, *_failures(results), *_skips(results), "", verdict(results), ""])


def verdict(results: Sequence[Result]) -> str:
    """Return one line that states how many of all checks passed, and how many required checks failed."""
    failed = sum(result.fails_run for result in results)
    passed = sum(result.outcome is Outcome.PASSED for result in results)
    end = f"{failed} required checks failed" if failed else "no required check failed"
    return f"{passed} of {len(results)} checks passed; {end}"


def _failures(results: Sequence[Result]) -> list[str]:
    lines: list[str] = []
    for result in results:
        if result.outcome is Outcome.FAILED:
            lines += ["", f"{result.severity}: {result.id}", f"    {result.problem}"]
            lines += [f"    why: {result.reason} ({result.source})"]
    return lines


def _skips(results: Sequence[Result]) -> list[str]:
    causes = Counter((r.face, r.problem) for r in results if r.outcome is Outcome.SKIPPED)
    lines = [
        f"skipped: {face}: {count} check{'s' if count > 1 else ''}: {cause}" for (face, cause), count in causes.items()
    ]
    return ["", *lines] if lines else []


def junit(results: Sequence[Result]) -> bytes:
    """Return the results as JUnit XML, a suite for each wire format; failed recommended checks are skipped."""
    root = ET.Element("testsuites", name="umg conformance")
    for summary in summaries(results):
        own = [result for result in results if result.face == summary.face]
        suite = ET.SubElement(
            *(root, "testsuite"),
            name=summary.face,
            tests=str(len(own)),
            failures=str(summary.failed),
            skipped=str(summary.skipped + summary.differing),
            errors="0",
            time=f"{sum(result.seconds for result in own):.3f}",
        )
        for result in own:
            _case(suite, result)
    ET.indent(root)
    written: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return written


def _case(suite: ET.Element, result: Result) -> None:
    name, seconds = f"conformance.{result.face}", f"{result.seconds:.3f}"
    case = ET.SubElement(suite, "testcase", classname=name, name=result.id, time=seconds)
    about = f"{result.reason}\nsource: {result.source}"
    if result.fails_run:
        ET.SubElement(case, "failure", message=_printable(result.problem), type=result.severity).text = about
    elif result.outcome is Outcome.FAILED:
        ET.SubElement(case, "skipped", message=_printable(f"recommended: {result.problem}")).text = about
    elif result.outcome is Outcome.SKIPPED:
        ET.SubElement(case, "skipped", message=_printable(result.problem))


def _printable(text: str) -> str:
    return "".join(character if character >= " " or character in "\t\n" else "?" for character in text)
