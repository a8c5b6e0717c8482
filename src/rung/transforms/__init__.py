"""Transforms: the only way to change an item's type, and the validators they run."""
