"""Every error that rung raises.

    RungError
    ├── ContextTypeError (TypeError)      an item would become text, or enter a type it may not enter
    │   └── LaunderingError               a protected text shares a run with untrusted items (`hits`)
    ├── TransformError                    a validator refused a promotion (`failures`)
    │   └── CompactionError               no summary was good enough (`failures`); the history stays as it is
    ├── ConfigError (ValueError)          a policy, intent or TOML file is wrong (`path` of the field)
    │   └── PolicyError                   a policy contradicts itself or leaves a path unguarded
    ├── InputError (ValueError)           a value at the boundary is wrong: text, datetime, size, name
    │   ├── PairingError                  a tool result without its call, twice, or ambiguous
    │   └── TemplateError                 a template's slots do not fit its text or its values
    ├── BudgetError                       required items do not fit (`required`, `budget`, `shortfall`)
    ├── VerificationError                 a compiled turn contradicts its manifest: a bug of rung's own
    ├── ScopeError (PermissionError)      a tenant, subject, session, clearance or scope excludes this
    ├── SourceError                       a source failed, timed out or broke its contract
    ├── StoreError
    │   ├── UnknownItemError (KeyError)   no such item in this store and scope
    │   ├── ForeignItemError              forged, foreign or altered item
    │   ├── ConflictError                 another writer came first (`expected`, `actual`)
    │   ├── IntegrityError                what is stored contradicts its digest, chain or references
    │   ├── SchemaVersionError            the file or database is from another version
    │   └── StoreBusyError                a bounded wait for the database ran out
    ├── RequestError (ValueError)         a provider would refuse this request (`problems`)
    ├── WireError                         an envelope was refused (`reason`)
    ├── ToolError                         a tool call was refused or failed (`reason`)
    ├── ModelError                        a provider refused, failed, or sent what cannot be read
    │   ├── ModelAuthError                no key, or a key the provider refuses
    │   ├── ModelRateLimitError           asked to slow down (`retry_after` in seconds)
    │   ├── ModelTimeoutError             no answer in time, or the connection broke
    │   ├── ModelRequestError             the provider calls the request invalid
    │   └── ModelReplyError               the reply breaks the protocol
    ├── LimitError                        a run limit ended the work (`limit`)
    └── MissingExtraError (ImportError)   an optional package is not installed

A message gives the fact, the limit, the culprits and the mend, in lower case and without a final period;
input stands in backticks. Fields carry the same facts for programs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class RungError(Exception):
    """Base of all errors of this package. Keyword arguments become attributes."""

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.message = message
        self.fields = fields
        for name, value in fields.items():
            setattr(self, name, value)

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.fields)


def _rebuild(kind: type[RungError], message: str, fields: dict[str, Any]) -> RungError:
    return kind(message, **fields)


class ContextTypeError(RungError, TypeError):
    """An item would become plain text, or text would enter a type that it may not enter.

    Fields where known: `item_id`, `item_type`, `target`.
    """


class LaunderingError(ContextTypeError):
    """A protected text shares a run with untrusted items; `hits` lists them with their spans."""

    hits: tuple[Any, ...]


class TransformError(RungError):
    """A validator refused a transform; `failures` holds (validator, reason code, detail)."""

    failures: tuple[Any, ...]


class CompactionError(TransformError):
    """No summary of a history passed its checks: it stays as it is; `failures` says what was wrong with the last."""


class ConfigError(RungError, ValueError):
    """A configuration is wrong; `path` names the field, for example `sources.orders.max_tokens`."""

    path: str


class PolicyError(ConfigError):
    """A policy contradicts itself or leaves an unguarded path into a protected type."""


class InputError(RungError, ValueError):
    """A value given at the boundary is wrong; `field` names it."""


class PairingError(InputError):
    """Tool calls and results do not pair: an orphan, a second answer, or an ambiguous id."""


class TemplateError(InputError):
    """A template's slots do not fit its text, or its values do not fit the slots."""


class BudgetError(RungError):
    """Required content does not fit; `required` lists (name, tokens), `budget` and `shortfall` are tokens."""

    required: tuple[tuple[str, int], ...]
    budget: int
    shortfall: int


class VerificationError(RungError):
    """A compiled turn contradicts its manifest, budget or channels. It is a bug of rung's own; report it."""


class ScopeError(RungError, PermissionError):
    """A tenant, subject, session, clearance or scope excludes what was asked."""


class SourceError(RungError):
    """A source failed, timed out or returned what it may not return; `source` names it."""

    source: str


class StoreError(RungError):
    """The store refused or could not do what was asked."""


class UnknownItemError(StoreError, KeyError):
    """No such item in this store and scope; `item_id` names it."""


class ForeignItemError(StoreError):
    """An item that this store did not issue, or that was altered since; `item_id` names it."""


class ConflictError(StoreError):
    """Another writer came first; `expected` and `actual` are versions."""


class IntegrityError(StoreError):
    """Stored data contradicts its digest, chain or references; `culprits` lists ids."""


class SchemaVersionError(StoreError):
    """A database was written by another version; `found` and `supported` are numbers."""


class StoreBusyError(StoreError):
    """A bounded wait for the database ran out; `waited` is in seconds."""


class RequestError(RungError, ValueError):
    """A provider would refuse this request; `problems` lists each with its place and rule."""

    problems: tuple[Any, ...]


class WireError(RungError):
    """An envelope was refused; `reason` is a stable code."""

    reason: str


class ToolError(RungError):
    """A tool call was refused or failed; `reason` is a stable code."""

    reason: str


class ModelError(RungError):
    """A provider refused, failed, or sent what cannot be read; `provider` and `status` where known."""


class ModelAuthError(ModelError):
    """No key, or a key that the provider refuses."""


class ModelRateLimitError(ModelError):
    """The provider asks to slow down; `retry_after` is in seconds, or None."""


class ModelTimeoutError(ModelError):
    """No answer in time, or the connection broke."""


class ModelRequestError(ModelError):
    """The provider calls the request invalid."""


class ModelReplyError(ModelError):
    """The reply breaks the provider's own protocol."""


class LimitError(RungError):
    """A run limit ended the work; `limit` names it."""

    limit: str


class MissingExtraError(RungError, ImportError):
    """An optional package is not installed; `extra` names what to install."""

    extra: str


def missing_extra(package: str, extra: str) -> MissingExtraError:
    """The error for an optional package that is not there: says what to install."""
    return MissingExtraError(f"`{package}` is not installed (install 'rung[{extra}]')", package=package, extra=extra)


def kind(value: object) -> str:
    """What a wrong value is, for messages: its type, never its content."""
    return type(value).__name__


def names(values: Iterable[str], limit: int = 8) -> str:
    """A short list for a message: at most `limit` names, then how many more."""
    all_names = list(values)
    shown = ", ".join(f"`{name}`" for name in all_names[:limit])
    return shown if len(all_names) <= limit else f"{shown} and {len(all_names) - limit} more"
