"""The rule table: stable ids, how severe, why, and the mend. The rule pages in the docs come from it."""

from __future__ import annotations

from dataclasses import dataclass


def _mend(item: str, slot: str) -> str:
    return (
        "register it with its type and pass the item to the compiler: "
        f'`store.compile([rules, {item}, …])`; or fill a slot: `Template("… {{{slot}}}").fill({slot}=item)`'
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule. `level` is `error`, `warning` or `note`; `kind` is the source kind that it reports."""

    id: str
    name: str
    level: str
    title: str
    why: str
    mend: str
    kind: str = ""
    bad: str = ""
    good: str = ""


_TABLE = (
    Rule(
        id="RUNG000",
        name="unreadable-file",
        level="error",
        title="the file cannot be parsed",
        why="what cannot be read cannot be checked, so it counts as a finding and not as a pass",
        mend="correct the syntax, run under the Python that the file is written for, or exclude the file",
        bad="def broken(:",
        good="def whole(): ...",
    ),
    Rule(
        id="RUNG001",
        name="unused-ignore",
        level="note",
        title="an ignore comment silences nothing",
        why="an ignore that outlives its finding hides the next one on that line",
        mend="remove the comment",
        bad="x = 1  # rung: ignore[RUNG101]",
        good="x = 1",
    ),
    Rule(
        id="RUNG101",
        name="tool-result-as-instruction",
        level="error",
        title="a tool result reaches an instruction",
        why="whoever controls what the tool returns can write the model's instructions",
        mend=_mend('store.add(ToolOutput, result, source="tool:…")', "result"),
        kind="tool",
        bad='messages = [{"role": "system", "content": f"Rules. {tool.invoke(query)}"}]',
        good='turn = store.compile([rules, store.add(ToolOutput, result, source="tool:search")])',
    ),
    Rule(
        id="RUNG102",
        name="http-response-as-instruction",
        level="error",
        title="an HTTP response reaches an instruction",
        why="whoever serves or alters the page can write the model's instructions",
        mend=_mend('store.add(ToolOutput, page, source="http:…")', "page"),
        kind="http",
        bad='client.messages.create(system="Summarise: " + requests.get(url).text, messages=m)',
        good='turn = store.compile([rules, store.add(ToolOutput, page, source="http:news")])',
    ),
    Rule(
        id="RUNG103",
        name="retrieved-text-as-instruction",
        level="error",
        title="retrieved text reaches an instruction",
        why="whoever can put a document into the index can write the model's instructions",
        mend=_mend("store.promote(passage, Evidence)", "passage"),
        kind="retrieval",
        bad='SystemMessage(content="Context: " + retriever.invoke(question)[0].page_content)',
        good="turn = store.compile([rules, store.promote(passage, Evidence)])",
    ),
    Rule(
        id="RUNG104",
        name="file-content-as-instruction",
        level="error",
        title="the content of a file is built into an instruction",
        why="a file that users, tools or other programs write can carry instructions of their own",
        mend="your own prompt file: `store.load_instruction(path)`; any other file: "
        + _mend('store.add(Evidence, text, source="file:…")', "document"),
        kind="file",
        bad='Agent(instructions=f"Answer from this: {Path(upload).read_text()}")',
        good='rules = store.load_instruction("prompts/answer.md")',
    ),
    Rule(
        id="RUNG105",
        name="memory-as-instruction",
        level="error",
        title="a memory reaches an instruction",
        why="a memory holds what was once said or read; as an instruction it outlives its session",
        mend=_mend("store.promote(memory_item, Memory)", "memory"),
        kind="memory",
        bad='SystemMessage(content=f"Known: {memory.load_memory_variables({})}")',
        good="turn = store.compile([rules, memory_item, store.user(question)])",
    ),
    Rule(
        id="RUNG106",
        name="revealed-text-as-instruction",
        level="error",
        title="revealed text of an item reaches an instruction",
        why="`reveal` gives text without its labels: in an instruction nobody can tell whose words these are",
        mend=_mend("item", "order"),
        kind="reveal",
        bad='store.instruct("Do: " + order.reveal("shown to the model"))',
        good="store.compile([rules, order])",
    ),
    Rule(
        id="RUNG107",
        name="item-as-instruction",
        level="error",
        title="an item is handed to an instruction as if it were text",
        why="the item loses its type on the way, or the call raises `ContextTypeError` when it runs",
        mend=_mend("item", "order"),
        kind="item",
        bad="def ask(order: ContextItem[ToolOutput]): return SystemMessage(content=order.text)",
        good="turn = store.compile([rules, order])",
    ),
    Rule(
        id="RUNG108",
        name="configured-source-as-instruction",
        level="error",
        title="text of a source from the configuration reaches an instruction",
        why="the configuration of this project calls that source untrusted",
        mend=_mend('store.add(ToolOutput, text, source="…")', "text"),
        kind="custom",
        bad='system_prompt = "Rules. " + acme.feed.latest()',
        good='turn = store.compile([rules, store.add(ToolOutput, text, source="acme:feed")])',
    ),
    Rule(
        id="RUNG201",
        name="item-formatted",
        level="error",
        title="an item is formatted or concatenated into text",
        why="as text an item loses type, source and lineage, so it raises `ContextTypeError` when this runs",
        mend='pass the item to `store.compile([...])`, or `Template("… {order}").fill(order=item)`',
        bad='def ask(order: ContextItem[ToolOutput]): return f"Order: {order}"',
        good='def ask(order: ContextItem[ToolOutput]): return Template("Order: {order}").fill(order=order)',
    ),
    Rule(
        id="RUNG202",
        name="items-joined",
        level="error",
        title="a list of items is formatted or joined into text",
        why="as text the items lose their types, sources and lineage",
        mend="pass the items to `store.compile([rules, *items])`",
        bad='def ask(items: list[ContextItem[Evidence]]): return f"Facts: {items!r}"',
        good="def ask(items: list[ContextItem[Evidence]]): return store.compile([rules, *items])",
    ),
    Rule(
        id="RUNG203",
        name="instruction-not-literal",
        level="warning",
        title="an instruction is built at run time",
        why="`store.instruct` takes a literal or a Template (PEP 675); pyright proves it, mypy does not",
        mend='write a literal, or slots that items fill: `Template("… {order}").fill(order=item)`',
        bad='store.instruct(f"Answer in {language}.")',
        good='store.instruct("Answer in the user\'s language.")',
    ),
    Rule(
        id="RUNG301",
        name="untrusted-text-in-named-prompt",
        level="warning",
        title="untrusted text is built into a text named as an instruction",
        why="by its name this text is an instruction; every word in it has the instruction's authority",
        mend=_mend("item", "text"),
        bad='system_prompt = f"You are a clerk. {tool.run(query)}"',
        good='system_prompt = "You are a clerk."',
    ),
    Rule(
        id="RUNG302",
        name="untrusted-text-beside-instructions",
        level="warning",
        title="untrusted text is built into a text that reads as instructions",
        why="instructions and untrusted text share one string: the model cannot tell which words are whose",
        mend=_mend("item", "text"),
        bad='prompt = f"<instructions>Be brief.</instructions> {requests.get(url).text}"',
        good="turn = store.compile([rules, page, store.user(question)])",
    ),
)

RULES: dict[str, Rule] = {rule.id: rule for rule in _TABLE}
"""Every rule by its id, in order."""

RULE_OF_KIND: dict[str, str] = {rule.kind: rule.id for rule in _TABLE if rule.kind}
"""Which rule reports a source kind that reaches an instruction."""


def rule_pages() -> str:
    """The docs' section on rules in Markdown, one entry for each rule, made from the table."""
    pages: list[str] = []
    for rule in RULES.values():
        pages.append(
            f"### {rule.id} `{rule.name}` ({rule.level})\n\n"
            f"{rule.title[0].upper()}{rule.title[1:]}.\n\n"
            f"Why: {rule.why}.\n\nMend: {rule.mend}.\n\n"
            f"```text\nfound      {rule.bad}\nnot found  {rule.good}\n```\n"
        )
    return "\n".join(pages)
