"""Storage: memory, SQLite and PostgreSQL behind the ledger's `Backend`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from rung.errors import InputError
from rung.ledger.backend import Backend
from rung.records.types import ContextType


def open_backend(address: str | os.PathLike[str], types: Mapping[str, type[ContextType]], **options: Any) -> Backend:
    """The backend that an address names.

    Args:
        address: `:memory:`; `postgresql://…`; anything else is the path of a SQLite file, made if absent.
        types: the context types by name; an item of another type cannot be read.
        options: keyword arguments of `MemoryBackend`, `PostgresBackend` or `SqliteBackend`.

    Raises:
        InputError: an address of another scheme.
        MissingExtraError: PostgreSQL's client is not installed.
        SchemaVersionError: the file or database was written by another version.
    """
    text = os.fspath(address)
    if text == ":memory:":
        from rung.storage.memory import MemoryBackend

        return MemoryBackend(types, **options)
    if text.startswith(("postgresql://", "postgres://")):
        from rung.storage.postgres import PostgresBackend

        return PostgresBackend(text, types, **options)
    scheme, separator, path = text.partition("://")
    if separator and scheme != "sqlite":
        raise InputError(
            f"no backend for the scheme `{scheme}` (give `postgresql://…`, `sqlite://…`, a path, or `:memory:`)",
            field="address",
        )
    from rung.storage.sqlite import SqliteBackend

    return SqliteBackend(path if separator else text, types, **options)
