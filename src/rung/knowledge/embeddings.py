"""A local embedding that needs no download: a table of token vectors, averaged."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rung.errors import missing_extra

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"


class WordLlamaEmbedding:
    """The 256-dimensional table that ships in the package `wordllama`; a text is the mean of its tokens.

    English; about a thousand texts per second on one core; the table takes 32 MB of memory. Only the files of
    the package are used, so that nothing of it is imported and nothing is ever downloaded. The package is under
    MIT; its table was trained from the token vectors of Llama 2 and Phi-3, so read their terms before you
    redistribute it.

    Raises:
        MissingExtraError: `wordllama`, `safetensors` or `tokenizers` is not installed, or another build of it.
    """

    name = "wordllama/l2_supercat_256"
    dimensions = 256
    floor = 0.1

    def __init__(self) -> None:
        found = importlib.util.find_spec("wordllama")
        folder = None if found is None or found.origin is None else Path(found.origin).parent
        if folder is None or not (folder / _WEIGHTS).is_file() or not (folder / _TOKENIZER).is_file():
            raise missing_extra("wordllama", "embeddings")
        try:
            from safetensors.numpy import load_file  # pyright: ignore[reportUnknownVariableType]
            from tokenizers import Tokenizer
        except ImportError as error:
            raise missing_extra(error.name or "safetensors", "embeddings") from None
        import numpy as np

        tensors: Any = load_file(folder / _WEIGHTS)
        self._table: NDArray[np.float32] = tensors["embedding.weight"].astype(np.float32)
        self._tokenizer: Any = Tokenizer.from_file(str(folder / _TOKENIZER))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(4_096)

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A vector of length one for each text; zeros for an empty one."""
        import numpy as np

        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        encoded = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        for place, one in enumerate(encoded):
            if one.ids:
                vectors[place] = self._table[one.ids].mean(axis=0)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        np.divide(vectors, norms, out=vectors, where=norms > 0)
        return vectors
