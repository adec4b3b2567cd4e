"""Why a provider gave no answer, as the connections to it tell."""


class ConnectionFaultError(Exception):
    """Why there is no answer. Its text is for the log."""


class UnreachableError(ConnectionFaultError):
    """No connection could be made, or it was closed at once: nothing was sent."""

    def __init__(self, why: str, errno: int | None = None) -> None:
        """`errno`: what the system says."""
        super().__init__(why)
        self.errno = errno


class DisconnectedError(ConnectionFaultError):
    """The connection was closed before an answer began."""


class StaleError(ConnectionFaultError):
    """A connection that was kept broke as soon as something was written to it: most likely the provider had closed it
    before.
    """


class BrokenError(ConnectionFaultError):
    """The connection broke, or what came is no HTTP."""


class LateError(ConnectionFaultError):
    """A deadline is over: `connect` or `total`."""

    def __init__(self, name: str, *, sent: bool) -> None:
        """`sent`: whether the provider may have got something."""
        super().__init__(name)
        self.name = name
        self.sent = sent
