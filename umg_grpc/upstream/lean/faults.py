"""Why a provider gave no answer, as the connections to it tell."""


class ConnectionFaultError(Exception):
    """Why there is no answer. Its text is for the log."""


class UnreachableError(ConnectionFaultError):
    """No connection could be made, so nothing was sent."""


class DisconnectedError(ConnectionFaultError):
    """The connection was closed before an answer began."""


class BrokenError(ConnectionFaultError):
    """The connection broke, or what came is no HTTP."""


class LateError(ConnectionFaultError):
    """A deadline is over: `connect` or `total`."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name
