"""Fingerprints of untrusted text: what a protected text shares with it is found by construction, with no
model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .views import DEFAULT_N, NORMALISATION_VERSION, Normalised, normalise, views

if TYPE_CHECKING:
    from .index import FingerprintIndex, Held
    from .prints import SHORTEST
    from .runs import Run

__all__ = [
    "DEFAULT_N",
    "NORMALISATION_VERSION",
    "SHORTEST",
    "FingerprintIndex",
    "Held",
    "Normalised",
    "Run",
    "normalise",
    "views",
]

# The index computes with numpy, which `import rung` does not load.
_LAZY = {
    "FingerprintIndex": "index",
    "Held": "index",
    "Run": "runs",
    "SHORTEST": "prints",
}


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    from importlib import import_module

    return getattr(import_module(f".{module}", __name__), name)
