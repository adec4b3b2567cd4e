"""What a caller of one format is shown when a provider of another answered: the scenarios' cases, less what the pair
cannot say. A same-format pair shows what the provider's own callers see.
"""

from dataclasses import replace

from tests.providers.callers import Shown
from tests.providers.cases import ENDED, FILTERED, Case
from tests.providers.scenarios import REFUSAL, STOPPED

WITH_STOP = ("chat", "messages", "native")
BLOCKED = "the prompt was blocked: SAFETY"


def refused(case: Case, face: str) -> bool:
    """Whether the face takes no such request: files go to responses (text document, chat, rule 8)."""
    return face == "chat" and bool(case.wish.file)


def through(case: Case, face: str, upstream: str, *, streamed: bool) -> Shown:
    """As the SDK of the face shows it."""
    shown = case.expected(face)
    if face == upstream:
        return shown
    match case.id:
        case "stop":
            return _stop(shown, face, upstream)
        case "refusal":
            return _refusal(shown, face, upstream)
        case "filtered" | "blocked" if face == "messages":
            told = {"filtered": REFUSAL, "blocked": BLOCKED} if upstream == "native" else {}
            return replace(shown, refusal=told.get(case.id, ""))
        case "blocked":
            return replace(shown, finish=FILTERED[face])
        case "thinking" | "thinking-tools" if face == "chat" and upstream in ("responses", "native"):
            return replace(shown, thought="")  # an effort asks for no thoughts to be shown
        case "citations" if streamed and face == "messages" and upstream != "messages":
            # the sources come after the text, which was sent as one block by then
            return replace(shown, sources=tuple((url, title, shown.text) for url, title, _ in shown.sources))
    return shown


def _stop(shown: Shown, face: str, upstream: str) -> Shown:
    """Responses know no stop sequences; only messages tell a stop from the end."""
    whole = face not in WITH_STOP or upstream not in WITH_STOP
    return replace(shown, text=STOPPED if whole else shown.text, finish=ENDED[face])


def _refusal(shown: Shown, face: str, upstream: str) -> Shown:
    """In words in chat and responses, in a reason with an explanation in messages, in a reason alone in native."""
    worded = ("chat", "responses")
    if upstream in worded:
        return shown if face in worded else replace(shown, text=REFUSAL, refusal="")
    return replace(shown, finish=FILTERED[face], refusal="" if face != "messages" else REFUSAL)
