"""Indexes of the blocks or items of a stream, for providers that give the same index to several of them."""


class BlockIndexes:
    """Indexes of the blocks of one passed-through stream. Clients expect a different index for each block."""

    def __init__(self) -> None:
        self._own: dict[int, int] = {}  # by the provider's index, of its last block
        self._used: set[int] = set()
        self.is_wrong = False
        """Whether an index was repeated, so that the events of every later block have to be rewritten."""

    def start(self, index: int) -> int:
        """Return the index of a block that starts, unused so far. `index`: the provider's."""
        own = max(self._used) + 1 if index in self._used else index
        self.is_wrong = self.is_wrong or own != index
        self._own[index] = own
        self._used.add(own)
        return own

    def current(self, index: int) -> int:
        """Return the index of the last block that started with the provider's `index`."""
        return self._own.get(index, index)
