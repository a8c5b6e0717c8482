"""A small package whose one job is to pack a chat of plain dicts into a budget.

promptbudget's `pack_chat` is not here: its messages hold a role and a content only, so it drops calls and
their ids.
"""

from vocabulary import count

from peers.protocol import Adapter, Message, message_text


class CtxCompact(Adapter):
    def fit(self) -> list[Message]:
        from ctx_compact import compact

        return compact(
            self.history,
            max_tokens=self.budget,
            keep_head=1,
            keep_tail=2,
            count_tokens=lambda m: count(message_text(m)),
        ).messages
