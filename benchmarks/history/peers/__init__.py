"""The systems that are compared, and where their adapters are.

To join: write `peers/<name>_peer.py` with an `Adapter` (see `protocol.py`) and add one line here, for
example

    Peer("rung", "rung history window", "rung_peer", "RungHistory", "rung"),

An adapter's module is imported in the peer's own process only. Options become keyword arguments of the
adapter's constructor, so that one adapter can be entered at several settings (`curve=True` leaves an entry
out of the default run; `run.py --curve` runs these alone).
"""

from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

from peers.protocol import Adapter


@dataclass(frozen=True, kw_only=False)
class Peer:
    """One row of the table; `counts` is what it limits: `tokens`, or `messages` (it knows no budget)."""

    key: str
    title: str
    module: str
    adapter: str
    package: str = ""
    options: dict[str, float] = field(default_factory=dict)
    curve: bool = False
    counts: str = "tokens"

    def load(self) -> Adapter:
        """Import the adapter's module and make the adapter."""
        made: Adapter = getattr(import_module(f"peers.{self.module}"), self.adapter)(**self.options)
        return made

    def version(self) -> str:
        """Return the installed version of the peer's package, or an empty text."""
        try:
            return version(self.package) if self.package else ""
        except PackageNotFoundError:
            return ""


PEERS: tuple[Peer, ...] = (
    Peer("rung", "rung, history of a session", "rung_peer", "Session", "rung"),
    *(
        Peer(
            f"rung-{block}-{head}-{epoch}",
            f"rung, block {block}, head {head}, epoch {epoch}",
            "rung_peer",
            "Session",
            "rung",
            {"block": block, "head": head, "epoch": epoch},
            curve=True,
        )
        for block, head, epoch in (
            (0.2, 0.0, 1),
            (0.3, 0.0, 1),
            (0.4, 0.0, 1),
            (0.5, 0.0, 1),
            (0.6, 0.0, 1),
            (0.3, 0.3, 4),
            (0.38, 0.3, 4),
            (0.38, 0.3, 6),
            (0.38, 0.31, 8),
            (0.385, 0.305, 8),
        )
    ),
    Peer("reference", "incremental window, two water marks", "reference", "Window"),
    Peer("lc-trim", "LangChain trim_messages, exact", "langchain_peer", "Trim", "langchain-core"),
    Peer(
        "lc-trim-approx",
        "LangChain trim_messages, approximate",
        "langchain_peer",
        "TrimApproximate",
        "langchain-core",
    ),
    Peer("lc-summary", "LangChain SummarizationMiddleware", "langchain_peer", "SummaryMiddleware", "langchain"),
    Peer("langmem", "langmem summarize_messages", "langchain_peer", "LangMem", "langmem"),
    Peer("li-buffer", "LlamaIndex ChatMemoryBuffer", "llamaindex_peer", "Buffer", "llama-index-core"),
    Peer("li-memory", "LlamaIndex Memory", "llamaindex_peer", "BlockMemory", "llama-index-core"),
    Peer("haystack", "Haystack SlidingWindowCompactor", "haystack_peer", "Compactor", "haystack-ai"),
    Peer(
        "pydantic-ai",
        "Pydantic AI harness SlidingWindowCompaction",
        "pydantic_ai_peer",
        "Compaction",
        "pydantic-ai-harness",
    ),
    Peer(
        "openai-agents",
        "OpenAI Agents SQLiteSession, 50 items",
        "openai_agents_peer",
        "Session",
        "openai-agents",
        counts="messages",
    ),
    Peer(
        "agent-framework",
        "Agent Framework TruncationStrategy, to half",
        "agent_framework_peer",
        "Truncation",
        "agent-framework-core",
    ),
    Peer("autogen", "AutoGen TokenLimitedChatCompletionContext", "autogen_peer", "TokenLimited", "autogen-core"),
    Peer(
        "strands",
        "Strands SlidingWindowConversationManager, 50",
        "strands_peer",
        "SlidingWindow",
        "strands-agents",
        counts="messages",
    ),
    Peer("ctx-compact", "ctx-compact compact", "small_peers", "CtxCompact", "ctx-compact"),
    *(
        Peer(
            f"reference-{low}",
            f"incremental window, low mark {low}",
            "reference",
            "Window",
            "",
            {"low": low},
            True,
        )
        for low in (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    ),
)
