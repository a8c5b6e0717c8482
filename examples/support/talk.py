"""Three turns of the support agent, answered by a small model on this machine, with memory written and used.

    python examples/support/talk.py [FOLDER]

Where the model cannot run, it says why and shows the compiled turn instead. The model is tiny: its words are
not the point; what it was shown, and why, is. Writes each turn's manifest into FOLDER.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from rung import ContextEngine, ContextStore, Manifest, Principal
from rung.assembly.reply import Model
from rung.config import Configuration, load_configuration
from rung.errors import RungError
from rung.memory import MemoryStore

HERE = Path(__file__).parent
QUESTIONS = (
    "My name is Liang Jinhai, and I prefer to be reached by letter to my office.",
    "What does a replacement debit card for my Bluest Account cost?",
    "Good. How do I prefer to be reached, and what is my name?",
)
BUDGET = 1_300


def engine_of(found: Configuration, model: Model) -> ContextEngine:
    """The agent of the configuration, with a memory of its own beside the file's."""
    store = ContextStore(found.policy, instruction_sources=[found.instruction_source()], clock=found.agent.clock())
    return ContextEngine(
        store,
        model,
        system=(store.load_instruction("system"),),
        sources=found.sources(),
        intent="support",
        memory=MemoryStore(store, name="remembered"),
        max_output=80,
        budget=BUDGET,
        tokenizer=found.agent.tokenizer,
    )


async def talk(found: Configuration, model: Model, folder: Path) -> None:
    """Ask the three questions in one session and print what each turn was made of."""
    engine = engine_of(found, model)
    person = Principal(tenant=found.agent.tenant, subject=found.agent.subject)
    for number, question in enumerate(QUESTIONS, start=1):
        outcome = await engine.run(question, session="demo", principal=person)
        if outcome.status != "done" and engine.memory is not None:
            # The engine tells the memory of turns that ended well. What a person says counts however the reply ended.
            await engine.memory.after_turn(engine.view("demo", person), outcome.items)
        manifest = outcome.manifests[-1]
        totals = manifest.totals
        (folder / f"turn-{number}.json").write_text(manifest.json() + "\n", encoding="utf-8")
        print(f"\n> {question}\n{outcome.text.strip()[:400]}")
        print(f"  [{outcome.status}; {totals.total} of {totals.available} tokens; {memories(manifest)}]")
    print("\nWhy the last turn was as it was\n" + manifest.table())
    await engine.aclose()


def memories(manifest: Manifest) -> str:
    """What the turn was shown of what the agent itself remembered."""
    shown = [entry for entry in manifest.included() if entry.source == "remembered"]
    return f"{len(shown)} remembered: {', '.join(entry.key or entry.label or '' for entry in shown) or 'nothing yet'}"


def main() -> int:
    """Run the talk with the local model, or say why it cannot run."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/demo")
    folder.mkdir(parents=True, exist_ok=True)
    found = load_configuration(HERE / "rung.toml")
    try:
        from rung.models import OpenAIChat
        from rung.testing.local import INSTALL, available, local_model

        ready = available()
        if not ready.ok:
            print(f"No model on this machine: {ready.reason} ({INSTALL}).\nThe compiled turn above is what it sees.")
            return 0
        with local_model() as local:
            # One line is enough of an answer; so small a model does not find an end by itself.
            options = {"stop": ["\n"], "temperature": 0, "frequency_penalty": 1.0}
            model = OpenAIChat(local.name, base_url=local.base_url, api_key="none", options=options)
            asyncio.run(talk(found, model, folder))
    except RungError as problem:
        print(f"The local model could not answer: {problem}\nThe compiled turn above is what it sees.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
