"""Values at and beyond the limits of each kind, which hostile callers and providers send: headers, numbers, times, JSON
texts and URLs.
"""

SURROGATE = rb'"\ud800"'
"""JSON string with half of a surrogate pair."""
JSON_STRINGS = (
    SURROGATE,
    rb'"a\udfffb"',
    rb'"\ude00\ud83d"',
    rb'"\u0000"',
    rb'"\u202e\u200b\ufeff\u2028"',
    b'""',
    b'"\x7f\xc2\x85"',
    b'"%b"' % (b"a" * 5000),
    b'"\xff\xfe"',
    b'"https://[::1/x"',
    b'"NaN"',
)
JSON_NUMBERS = (
    b"1e999",
    b"-1e999",
    b"1e308",
    b"1e-999",
    b"-0.0",
    b"-1",
    b"0.5",
    b"9223372036854775807",
    b"9223372036854775808",
    b"-9223372036854775809",
    b"1" + b"0" * 400,
    b"1" + b"0" * 5000,
    b"NaN",
    b"Infinity",
    b"01",
)
JSON_VALUES = (*JSON_STRINGS, *JSON_NUMBERS, b"null", b"true", b"[]", b"{}", b'{"\\ud800":1}', b"[1e999]")
HEADER_VALUES = (b"\xff", b"a\x80b", "é\u202e".encode(), b"", b"1" * 5000, b"-1", b"1e999", b"NaN", b"https://[::1/x")
URLS = (
    "https://[::1/x",
    "https://[fe80::1%25x]/",
    "http://a:99999/x",
    "http://a:x/",
    "//",
    "http://",
    "https://\u202e/\ud800",
    "ftp://a/b",
    "javascript:alert(1)",
    "data:",
    "data:;base64,!",
    "http://a b/",
    "https://a/\r\nx: y",
    "\x00",
    "/../..//",
    "https://" + "a" * 70000,
)
SECONDS = (0, -1, 1, 253_402_300_799, 253_402_300_800, -62_135_596_800, -62_135_596_801, 2**62, -(2**62), 2**63 - 1)
NANOS = (0, -1, 999_999_999, 10**9, 2**31 - 1, -(2**31))
TIMES = tuple((seconds, nanos) for seconds in SECONDS for nanos in NANOS)
