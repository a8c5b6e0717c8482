"""What is measured on each request that a peer gives back. None of it is timed."""

from dataclasses import dataclass, field

from vocabulary import encoding, tokens

MESSAGE_FRAMING = 3  # OpenAI's cookbook, "How to count tokens with tiktoken": three a message …
REPLY_FRAMING = 3  # … and three for the start of the reply
RECENT_EXCHANGES = 5


def content_tokens(message: dict) -> int:
    """Count a message's content and its calls' names and arguments."""
    total = tokens(message.get("content") or "")
    for call in message.get("tool_calls") or []:
        total += tokens(call["function"]["name"]) + tokens(call["function"]["arguments"])
    return total


def framed_tokens(message: dict) -> int:
    """Count a message with its framing: role, call ids, and the constant per message."""
    total = content_tokens(message) + MESSAGE_FRAMING + tokens(message["role"])
    total += sum(tokens(call["id"]) for call in message.get("tool_calls") or [])
    if message.get("tool_call_id"):
        total += tokens(message["tool_call_id"])
    return total


def wire(message: dict) -> str:
    """Return one canonical text of a message, by which two requests are compared."""
    calls = "".join(
        f"<call {c['id']} {c['function']['name']}>{c['function']['arguments']}" for c in message.get("tool_calls") or []
    )
    answers = f"[{message['tool_call_id']}]" if message.get("tool_call_id") else ""
    return f"<{message['role']}>{answers}{message.get('content') or ''}{calls}\n"


def equal_prefix(before: list[str], now: list[str]) -> int:
    """Count the tokens at the start of `now` that are the same as in `before`, to the character."""
    total = 0
    for old, new in zip(before, now, strict=False):
        if old == new:
            total += tokens(new)
            continue
        same = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
        return total + len(encoding().encode_ordinary(new[:same]))
    return total


def broken_pairs(messages: list[dict]) -> int:
    """Count results without their call right before them, and calls without a result."""
    errors = 0
    waiting: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            if message.get("tool_call_id") in waiting:
                waiting.discard(message["tool_call_id"])
            else:
                errors += 1
            continue
        errors += len(waiting)
        waiting = {c["id"] for c in message.get("tool_calls") or []} if message["role"] == "assistant" else set()
    return errors + len(waiting)


@dataclass
class Tally:
    """Sums over the requests of one run; `budget` in tokens."""

    budget: int
    requests: int = 0
    over_content: int = 0
    over_framed: int = 0
    largest: int = 0
    pairs_broken: int = 0
    lost_user: int = 0
    lost_system: int = 0
    recent_cut: int = 0
    equal: int = 0
    total: int = 0
    used: int = 0
    used_framed: int = 0
    steady: int = 0
    full: bool = False
    before: list[str] = field(default_factory=list)
    recent: list[list[str]] = field(default_factory=list)

    def exchange(self) -> None:
        """Begin a new exchange: its messages are the newest of those that should stay verbatim."""
        self.recent = [*self.recent[-RECENT_EXCHANGES + 1 :], []]

    def added(self, message: dict) -> None:
        """Note a message that the peer was given."""
        self.recent[-1].append(wire(message))

    def request(self, messages: list[dict], *, user: str, given: int) -> None:
        """Measure one request: `user` is the newest user text, `given` how many messages the peer holds."""
        self.requests += 1
        content = sum(map(content_tokens, messages))
        framed = sum(map(framed_tokens, messages)) + REPLY_FRAMING
        self.largest = max(self.largest, framed)
        self.over_content += content > self.budget
        self.over_framed += framed > self.budget
        self.pairs_broken += broken_pairs(messages) > 0
        self.lost_user += not any(m["role"] == "user" and user in (m.get("content") or "") for m in messages)
        self.lost_system += not messages or messages[0]["role"] != "system"
        now = [wire(m) for m in messages]
        wanted = [text for exchange in self.recent for text in exchange]
        self.recent_cut += now[-len(wanted) :] != wanted
        # From the first request that leaves something out, the run is in its steady state.
        self.full = self.full or len(messages) < given
        if self.full and self.before:
            self.equal += equal_prefix(self.before, now)
            self.total += sum(map(tokens, now))
            self.used += content
            self.used_framed += framed
            self.steady += 1
        self.before = now

    def figures(self) -> dict:
        """Return the figures of the run."""
        return {
            "requests": self.requests,
            "over_budget": self.over_framed,
            "over_budget_content": self.over_content,
            "largest_request": self.largest,
            "broken_pairs": self.pairs_broken,
            "lost_user": self.lost_user,
            "lost_system": self.lost_system,
            "recent_cut": self.recent_cut,
            "equal_prefix": round(self.equal / self.total, 3) if self.total else None,
            "budget_use": round(self.used / self.steady / self.budget, 3) if self.steady else None,
            "budget_use_framed": round(self.used_framed / self.steady / self.budget, 3) if self.steady else None,
        }
