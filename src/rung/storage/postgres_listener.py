"""A thread that hears of invalidations and erasures in other processes, also after the server restarted."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Callable
from contextlib import closing

import psycopg

from rung.errors import RungError
from rung.storage.postgres_connections import Connection, Connections

_SHORTEST, _LONGEST = 0.05, 2.0


class Listener:
    """Listens on one channel. A message is `event` or `erased` and a number.

    Args:
        connections: where a connection of its own comes from.
        channel: the quoted name of the channel.
        ttl: how often it looks by itself, in seconds: what a lost message costs at most.
        erased: called when another process erased items, and when it might have.
    """

    def __init__(self, connections: Connections, channel: str, ttl: float, erased: Callable[[], None]) -> None:
        self._connections = connections
        self._channel = channel
        self._ttl = ttl
        self._erased = erased
        self._stop = threading.Event()
        self._wake, self._woken = socket.socketpair()
        self._erasures = -1
        self._heard = 0.0
        self.latest = -1
        self._thread = threading.Thread(target=self._run, name="rung-listen", daemon=True)
        self._thread.start()

    @property
    def is_current(self) -> bool:
        """Whether nothing can have happened unheard for longer than the time to live."""
        return time.monotonic() - self._heard < 2 * self._ttl

    def note(self, number: int) -> None:
        """This process emitted an event of this number itself."""
        self.latest = max(self.latest, number)

    def _run(self) -> None:
        wait = _SHORTEST
        while not self._stop.is_set():
            try:
                with closing(self._connections.connect()) as connection:
                    connection.execute(f"LISTEN {self._channel}".encode())
                    self._look(connection)
                    wait = _SHORTEST
                    self._listen(connection)
            except (psycopg.Error, RungError, OSError):
                # What happens meanwhile is not heard: nothing is taken from the cache until it is again.
                self._heard = 0.0
                self._stop.wait(wait)
                wait = min(wait * 2, _LONGEST)

    def _listen(self, connection: Connection) -> None:
        while not self._stop.is_set():
            select.select([connection.fileno(), self._woken.fileno()], [], [], self._ttl)
            for message in connection.notifies(timeout=0):
                what, _, number = message.payload.partition(" ")
                if what == "erased":
                    self._erased()
                self.latest = max(self.latest, int(number))
                self._heard = time.monotonic()
            if time.monotonic() - self._heard >= self._ttl / 2:
                self._look(connection)

    def _look(self, connection: Connection) -> None:
        quoted = self._connections.quoted
        rows = connection.execute(f"SELECT name, value FROM {quoted}.counters".encode()).fetchall()
        counters: dict[str, int] = dict(rows)
        self.latest = max(self.latest, counters["events"])
        if counters["erased"] != self._erasures:
            self._erasures = counters["erased"]
            self._erased()
        self._heard = time.monotonic()

    def close(self) -> None:
        """Stop the thread."""
        if self._stop.is_set():
            return
        self._stop.set()
        self._wake.close()
        self._thread.join(self._ttl + _LONGEST)
        self._woken.close()
