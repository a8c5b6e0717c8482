"""The pasts of a store's sessions, kept between turns."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rung.compiler.past import Past


class PastCache:
    """At most `limit` pasts, those used last; what is dropped is read again when it is needed."""

    def __init__(self, limit: int = 256) -> None:
        self._limit = limit
        self._known: OrderedDict[object, tuple[threading.RLock, Past]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, key: object, make: Callable[[], Past]) -> tuple[threading.RLock, Past]:
        """The past of a session, and the lock under which one thread at a time uses it."""
        with self._lock:
            held = self._known.get(key)
            if held is None:
                held = self._known[key] = (threading.RLock(), make())
                while len(self._known) > self._limit:
                    self._known.popitem(last=False)
            self._known.move_to_end(key)
        return held
