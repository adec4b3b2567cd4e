"""Guard by regular expressions: secrets, card numbers, words, and the operator's own patterns."""

import asyncio
from collections.abc import Sequence

from umg_grpc.config.config_values import GuardRow
from umg_grpc.knowledge.sensitive_text_patterns import WORDS_SET, GuardedPattern
from umg_grpc.service.guardrails.guard_interface import ALLOW_RESPONSE, Guard
from umg_grpc.service.guardrails.pattern_matching import Match, PatternSearch
from umg_grpc.v1 import pb

SET_NOUNS = {
    "secrets": "a secret (`{}`)",
    "cards": "the number of a card",
    "emails": "an e-mail address",
    WORDS_SET: "a word that is not allowed",
}
"""Set of patterns -> the found text, in words."""
SLOW_CHARACTERS = 2**17
"""Characters that are searched in the event loop, in about 1 ms; more are searched in a thread."""


class PatternGuard(Guard):
    """Guard by regular expressions. It masks the matches in a text, or refuses a text with a match."""

    is_local = True

    def __init__(self, row: GuardRow) -> None:
        super().__init__(row)
        self._search = PatternSearch(row.patterns)

    async def check(self, request: pb.CheckRequest) -> pb.CheckResponse:
        if sum(len(each.text) for each in request.texts) > SLOW_CHARACTERS:
            return await asyncio.to_thread(self._check, request)
        return self._check(request)

    def due(self, context: str, text: str) -> int:
        return self._search.cut(context, text)

    @property
    def hold_back(self) -> int:
        return 0  # a checked text ends before the beginning of a match

    def _check(self, request: pb.CheckRequest) -> pb.CheckResponse:
        replaced = pb.GuardReplace()
        for each in request.texts:
            matches: Sequence[Match]
            if each.is_json:
                text, matches = self._search.masked_json(each.text)
            else:
                text, matches = self._masked(request.window.context, each.text)
            if matches and self.row.action == "refuse":
                return pb.CheckResponse(refuse=_refusal(matches))
            if matches:
                replaced.texts.append(pb.TextReplacement(path=each.path, text=text))
        return pb.CheckResponse(replace=replaced) if replaced.texts else ALLOW_RESPONSE

    def _masked(self, context: str, text: str) -> tuple[str, Sequence[Match]]:
        if not (matches := self._search.find(context + text, len(context))):
            return text, matches
        return self._search.mask(context + text, matches)[len(context) :], matches


def _refusal(matches: Sequence[Match]) -> pb.GuardRefuse:
    kinds = dict.fromkeys(_kind(match.row) for match in matches)
    return pb.GuardRefuse(reason=f"it contains {' and '.join(kinds)}", category=matches[0].row.name)


def _kind(row: GuardedPattern) -> str:
    """Return the kind of sensitive text that a pattern finds, as words for the caller."""
    return SET_NOUNS.get(row.set, f"a text of the pattern `{row.name}`").format(row.name)
