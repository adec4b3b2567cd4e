"""Redaction of provider messages for callers: removal of details of the operator's account with the provider."""

import re

from umg_grpc.wire.errors.secret_masking import without_secrets

MAX_CHARACTERS = 500

_ID = r"(?=[A-Za-z0-9]*\d|[A-Za-z0-9]{16})[A-Za-z0-9*]{5,}[\w*-]*"  # with a digit, or too long for a word
_REQUEST_WORDS = "request|trace|correlation"
_ACCOUNT_PREFIXES = "org|organization|proj|project|acct|account|user|usr|team|tenant|ws|cus|sub|dep"
_ACCOUNT_WORDS = "account|project|organization|tenant|subscription"
_HEX = "[0-9a-f]{1,4}"
_LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"  # repetitions are bounded, so that a long message takes bounded time
_DOMAINS = "com|net|org|io|ai|dev|cloud|app|co|cn|eu|uk|de|us|internal|local|lan|svc|cluster|corp|example|test"

# The order matters: a match of an earlier rule may contain a match of a later one.
_RULES: list[tuple[re.Pattern[str], str]] = [
    (re.compile(r"\b[a-z][a-z0-9+.-]{0,20}://[^\s\"'<>`)\]}]*[^\s\"'<>`)\]}.,;:!?]", re.IGNORECASE), "[url]"),
    (re.compile(r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,9}\b"), "[email]"),
    (re.compile(r"\beyJ[\w-]{8,}(?:\.[\w-]*){1,2}"), "[key]"),
    (re.compile(r"\b(Bearer|Basic)\s+[\w.~+/*=-]{6,}", re.IGNORECASE), r"\1 [key]"),
    (re.compile(r"\b(?:sk|pk|rk|ak|xai|gsk|hf|r8|pplx|nvapi|sess|ghp|glpat)[-_][\w*.-]{4,}[\w*-]"), "[key]"),
    (re.compile(r"\b(?:AIza[\w-]{6,}|ya29\.[\w.-]+|(?:AKIA|ASIA)[A-Z0-9]{8,})"), "[key]"),
    (
        re.compile(
            r"\b(api[ _-]?key|access[ _-]?token|secret|password)(\s+provided)?(\s*[:=]\s*|\s+)"
            r"[\"'`]?(?=\S*[\d*])[\w*.+/-]{6,}[\"'`]?",
            re.IGNORECASE,
        ),
        r"\1\2\3[key]",
    ),
    (re.compile(r"\barn:[\w-]+:[^\s\"'<>`)\]}]+"), "[id]"),
    (re.compile(r"\b((?:projects|accounts|organizations|subscriptions|tenants)/)[\w.-]+", re.IGNORECASE), r"\1[id]"),
    (
        re.compile(
            rf"\b((?:{_ACCOUNT_WORDS}|{_REQUEST_WORDS})[ _-]?id\"?(?:\s*[:=]\s*|\s+)|(?:{_ACCOUNT_WORDS})\s*[:=]\s*)"
            r"[\"'`]?(?=[\w-]*\d)[\w-]{4,}[\"'`]?",
            re.IGNORECASE,
        ),
        r"\1[id]",
    ),
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE), "[id]"),
    (re.compile(rf"\b(?:{_ACCOUNT_PREFIXES}|{_REQUEST_WORDS}|req|run|cf)[-_]{_ID}"), "[id]"),
    (re.compile(r"\b(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{24,}\b"), "[id]"),
    (re.compile(r"\b\d{12,}\b"), "[id]"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"), "[host]"),
    (
        re.compile(
            rf"\[?(?<![\w:])(?:(?:{_HEX}:){{7}}{_HEX}|(?:{_HEX}:){{0,6}}(?:{_HEX})?::(?:{_HEX}:){{0,6}}{_HEX})(?![\w:])(?:\](?::\d+)?)?",
            re.IGNORECASE,
        ),
        "[host]",
    ),
    (re.compile(r"\blocalhost(?::\d+)?\b", re.IGNORECASE), "[host]"),
    (re.compile(rf"\b(?:{_LABEL}\.){{1,9}}(?:{_DOMAINS})\b(?::\d+)?(?:/[\w./%-]*)?", re.IGNORECASE), "[host]"),
    (re.compile(r"\b[a-z][a-z0-9]{0,62}(?:[-.][a-z0-9]{1,63}){1,9}:\d{2,5}\b", re.IGNORECASE), "[host]"),
]
_BLANK = re.compile(r"[\s\x00-\x1f\x7f\u2028\u2029]+")


def clean(message: str, limit: int = MAX_CHARACTERS) -> str:
    """Return a provider's message in one line of at most `limit` characters, without secrets and account details. The
    called channel's exact secrets, other keys, URLs, hosts, e-mail addresses, ids of accounts and requests become
    `[key]`, `[url]`, `[host]`, `[email]` and `[id]`.
    """
    text = _BLANK.sub(" ", without_secrets(message)[: 8 * limit]).strip()
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text if len(text) <= limit else text[: limit - 3].rstrip() + "..."
