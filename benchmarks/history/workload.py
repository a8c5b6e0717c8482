"""One conversation that grows by an exchange a turn.

Turn t: the user writes; the model is called; on every other turn it calls a tool (two at once on every
tenth turn), the results come, and it is called again; then it answers. Each message has about `size`
tokens. A turn is a list of events: a message (a dict in OpenAI chat form) or `None`, which stands for "now
make the request".
"""

import random
from collections.abc import Iterator

from vocabulary import dumps, tokens

TEXT = """
account balance card payment transfer fee refund charge statement dispute merchant deposit savings
interest rate limit review branch agent customer policy order invoice shipment warehouse region
quarter contract ticket deploy rollback incident latency the a of to and in is for with from by on
at this that we you it will was has been not after before when which their there about over under
between because again still open closed late early small large first last next new old daily monthly
please check show explain compare confirm cancel change move send find keep close open wait answer
reply note question reason result number amount date week month year city street
"""
WORDS = TEXT.split()


def sentence(rnd: random.Random) -> str:
    """Return one made-up sentence, now and then with a number in it."""
    words = [rnd.choice(WORDS) for _ in range(rnd.randint(7, 14))]
    if rnd.random() < 0.3:
        words.insert(rnd.randrange(len(words)), str(rnd.randrange(10 ** rnd.randint(1, 6))))
    return " ".join(words).capitalize() + rnd.choice([". ", ".\n", "? ", "! "])


def prose(rnd: random.Random, size: int) -> str:
    """Return at least `size` tokens of prose and at most one sentence more."""
    parts: list[str] = []
    total = 0
    while total < size:
        parts.append(sentence(rnd))
        total += tokens(parts[-1])
    return "".join(parts).strip()


def records(rnd: random.Random, size: int) -> str:
    """Return at least `size` tokens of a JSON lookup result."""
    rows: list[dict] = []
    total = 4
    while total < size:
        rows.append(
            {
                "id": rnd.randrange(10**6),
                "name": " ".join(rnd.choice(WORDS) for _ in range(3)),
                "amount": round(rnd.random() * 1e4, 2),
                "ok": rnd.random() < 0.5,
            }
        )
        total += tokens(dumps(rows[-1])) + 1
    return dumps({"rows": rows})


def system_message(size: int = 150) -> dict:
    """Return the system message of about `size` tokens."""
    return {"role": "system", "content": prose(random.Random(1), size)}


def conversation(turns: int, *, seed: int = 11, size: int = 150) -> Iterator[list[dict | None]]:
    """Yield `turns` turns, the same for the same seed."""
    rnd = random.Random(seed)
    serial = 0
    for turn in range(turns):
        events: list[dict | None] = [{"role": "user", "content": prose(rnd, size)}, None]
        if turn % 2 == 0:
            calls = []
            for _ in range(2 if turn % 10 == 0 else 1):
                serial += 1
                arguments = {
                    "query": " ".join(rnd.choice(WORDS) for _ in range(12)),
                    "limit": rnd.randrange(100),
                }
                function = {"name": "lookup_records", "arguments": dumps(arguments)}
                calls.append({"id": f"call_{serial:06d}", "type": "function", "function": function})
            events.append({"role": "assistant", "content": "", "tool_calls": calls})
            events.extend(
                {
                    "role": "tool",
                    "tool_call_id": c["id"],
                    "name": "lookup_records",
                    "content": records(rnd, size),
                }
                for c in calls
            )
            events.append(None)
        events.append({"role": "assistant", "content": prose(rnd, size)})
        yield events


def summary(serial: int, size: int = 200) -> str:
    """Return the text that stands for a model's summary, given at once and at no cost."""
    return prose(random.Random(1000 + serial), size)
