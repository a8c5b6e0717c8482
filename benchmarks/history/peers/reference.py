"""No peer but a yardstick: what forty lines reach that count each message once.

Nothing is checked here: no types, no pairs (whole exchanges go out, so pairs hold), no manifest.
"""

from vocabulary import count

from peers.protocol import Adapter, Message, message_text

FRAMING = 14  # a generous bound of role, ids and constants per message


class Window(Adapter):
    """Over the high mark (the budget), whole exchanges leave at the front down to `low` of the budget."""

    def __init__(self, low: float = 0.6) -> None:
        self.low = low

    def start(self, system: Message, budget: int) -> None:
        self.system = system
        self.budget = budget
        self.kept: list[tuple[Message, int]] = []
        self.size = count(message_text(system)) + FRAMING

    def add(self, native: Message) -> None:
        size = count(message_text(native)) + FRAMING * (1 + len(native.get("tool_calls") or []))
        self.kept.append((native, size))
        self.size += size

    def fit(self) -> list[Message]:
        if self.size > self.budget:
            size, cut = self.size, 0
            starts = [i for i, (m, _) in enumerate(self.kept) if m["role"] == "user"]
            for start in starts[1:]:
                if size <= self.budget * self.low:
                    break
                size -= sum(n for _, n in self.kept[cut:start])
                cut = start
            self.kept = self.kept[cut:]
            self.size = size
        return [self.system, *(m for m, _ in self.kept)]
