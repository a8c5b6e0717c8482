"""Who asks, for what, and when: the predicates that every ranking runs under."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from rung.errors import InputError
from rung.knowledge.times import micros
from rung.records.canonical import canonical_json, canonical_text
from rung.records.labels import Sensitivity


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    """What a passage must satisfy to be ranked at all.

    Attributes:
        tenant: passages of this tenant and of everybody; None: of everybody only.
        scopes: what the reader has; a passage needs each of its own.
        clearance: the strictest sensitivity to be shown.
        now: the moment at which a document has to be valid.
        metadata: pairs that a document must have, compared as JSON.
        version: the document's version, or its label.
        document: this document only.
    """

    tenant: str | None
    now: datetime
    scopes: frozenset[str] = frozenset()
    clearance: Sensitivity = Sensitivity.INTERNAL
    metadata: Mapping[str, Any] = {}
    version: str | None = None
    document: str | None = None

    def where(self, access: str, metadata: str) -> tuple[str, dict[str, Any]]:
        """A predicate on `documents d`, and its parameters.

        Args:
            access: the database's predicate for "each scope of `d.access` is in `:scopes`".
            metadata: its predicate for "`d.metadata` has `{key}` equal to `{value}`".
        """
        terms = [
            "d.tenant IN ('', :tenant)",
            "(d.valid_from IS NULL OR d.valid_from <= :now)",
            "(d.valid_to IS NULL OR d.valid_to > :now)",
            "(d.sensitivity IS NULL OR d.sensitivity <= :clearance)",
            # Most documents need no scope: reading JSON for each of them would be most of a search's time.
            f"(d.access = '[]' OR {access})",
        ]
        values: dict[str, Any] = {
            "tenant": tenant_key(self.tenant),
            "now": micros(self.now),
            "clearance": int(self.clearance),
            "scopes": json.dumps(sorted(self.scopes)),
        }
        if self.tenant is not None:
            # A tenant's own document takes the place of everybody's of the same name.
            terms.append(
                "(d.tenant <> '' OR NOT EXISTS (SELECT 1 FROM documents o WHERE o.tenant = :tenant "
                "AND o.document = d.document AND (o.valid_from IS NULL OR o.valid_from <= :now) "
                "AND (o.valid_to IS NULL OR o.valid_to > :now)))"
            )
        for place, (key, value) in enumerate(sorted(self.metadata.items())):
            terms.append(metadata.format(key=f":key{place}", value=f":value{place}"))
            values |= {f"key{place}": key, f"value{place}": canonical_json(value, f"metadata.{key}")}
        if self.version is not None:
            terms.append("(d.version = :version OR d.label = :version)")
            values["version"] = self.version
        if self.document is not None:
            terms.append("d.document = :document")
            values["document"] = self.document
        return " AND ".join(terms), values


def tenant_key(tenant: str | None) -> str:
    """How a tenant stands in the tables: everybody's is not the tenant named by the empty string."""
    return "" if tenant is None else ":" + tenant


def tenant_of(key: str) -> str | None:
    return key[1:] if key else None


def stored_metadata(metadata: Mapping[str, Any]) -> str:
    """Metadata as a JSON object of JSON texts, so that equality is equality of canonical JSON.

    Raises:
        InputError: a key that is no text, or a value that JSON cannot hold.
    """
    texts: dict[str, str] = {}
    for key, value in metadata.items():
        if not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"`metadata` has a key of kind {type(key).__name__} (keys are texts)", field="metadata")
        texts[canonical_text(key, "metadata")[0]] = canonical_json(value, f"metadata.{key}")
    return json.dumps(texts, sort_keys=True)


def read_metadata(stored: str) -> dict[str, Any]:
    return {key: json.loads(value) for key, value in json.loads(stored).items()}
