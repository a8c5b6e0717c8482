"""Sources, sinks, sanitizers and carriers as data. `pyproject.toml` adds to them.

A pattern is a glob over a dotted path in lower case. A call or a subscript inside the path is written `()`
or `[]`: `tools[name].invoke(x)` has the path `tools[].invoke`. A path is tried as it is written, with its
imported names spelt out, and with its receiver's class where that is known, so `httpx.client.get` matches
`client = httpx.Client(); client.get(url)`. `*tool.invoke` only asks that the receiver's name ends in `tool`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

KINDS: dict[str, str] = {
    "tool": "tool result",
    "http": "HTTP response",
    "retrieval": "retrieved text",
    "file": "file content",
    "memory": "memory",
    "reveal": "revealed text of an item",
    "item": "item",
    "custom": "text of a configured source",
}
"""Source kinds, and how a message calls them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where untrusted text comes from: exactly one of `call`, `attribute`, `annotation`, `decorator`."""

    kind: str
    call: str = ""
    attribute: str = ""
    annotation: str = ""
    decorator: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """Where text becomes an instruction: a call's argument, by keyword, by position (from 0), or both."""

    call: str
    argument: str = ""
    position: int | None = None
    channel: str = "an instruction"


def _calls(kind: str, *patterns: str) -> tuple[Source, ...]:
    return tuple(Source(kind=kind, call=pattern) for pattern in patterns)


def _attributes(kind: str, *patterns: str) -> tuple[Source, ...]:
    return tuple(Source(kind=kind, attribute=pattern) for pattern in patterns)


def _annotations(kind: str, *patterns: str) -> tuple[Source, ...]:
    return tuple(Source(kind=kind, annotation=pattern) for pattern in patterns)


_HTTP_VERBS = ("get", "post", "put", "patch", "request", "stream")

SOURCES: tuple[Source, ...] = (
    # Tools: LangChain, MCP, LlamaIndex, search wrappers, commands.
    *_calls("tool", "*tool.invoke", "*tool.ainvoke", "*tool.run", "*tool.arun", "*tool._run", "*tool._arun"),
    *_calls("tool", "*tool.call", "*tool.acall", "*tool.execute", "*tool.forward", "*tool.on_invoke_tool"),
    *_calls("tool", "*tools[].invoke", "*tools[].ainvoke", "*tools[].run", "*tools[].call", "*tools[].execute"),
    *_calls("tool", "*tools[]", "*tool_map[]", "*tool_registry[]", "*tools_by_name[].invoke"),
    *_calls("tool", "*tools_by_name[].ainvoke", "*tool_map[].invoke", "*tools_by_name[]"),
    *_calls("tool", "*.call_tool", "*.acall_tool", "*.execute_tool", "*.run_tool", "*.invoke_tool"),
    *_calls("tool", "call_tool", "execute_tool", "run_tool", "invoke_tool", "*tool_executor.invoke"),
    *_calls("tool", "*toolnode.invoke", "*toolnode().invoke", "*tool_node.invoke", "*tool_node.ainvoke"),
    *_calls("tool", "*searchrun.run", "*searchrun.invoke", "*searchrun().run", "*searchrun().invoke"),
    *_calls("tool", "*apiwrapper.run", "*apiwrapper.results", "*apiwrapper().run", "*queryrun.run"),
    *_calls("tool", "*searchresults.run", "*searchresults.invoke", "*queryrun.invoke", "*queryrun().run"),
    *_calls("tool", "*tavilyclient.search", "*tavilyclient.extract", "*tavily.search", "*tavily_client.search"),
    *_calls("tool", "*ddgs.text", "*ddgs().text", "*ddgs.news", "*firecrawlapp.scrape_url", "*exa.search*"),
    *_calls("tool", "wikipedia.summary", "wikipedia.page", "*pythonrepl.run", "*python_repl.run"),
    *_calls("tool", "subprocess.check_output", "subprocess.run", "subprocess.getoutput", "os.popen"),
    *_calls("tool", "*web_search", "*search_web", "*google_search"),
    *_annotations("tool", "*toolmessage", "*calltoolresult", "*toolreturnpart", "*toolresultblock*", "*toolresult"),
    *(Source(kind="tool", decorator=name) for name in ("tool", "function_tool", "*.tool", "*.tool_plain")),
    *(Source(kind="tool", decorator=name) for name in ("*.function_tool", "*.register_tool", "kernel_function")),
    # HTTP clients.
    *(Source(kind="http", call=f"{base}.{verb}") for base in ("requests", "httpx", "httpx2") for verb in _HTTP_VERBS),
    *(
        Source(kind="http", call=f"{base}.{verb}")
        for base in (
            "*requests.session",
            "*requests.session()",
            "*httpx.client",
            "*httpx.asyncclient",
            "*httpx2.client",
            "*httpx2.asyncclient",
            "*clientsession",
            "*aiohttp.clientsession()",
            "*http_client",
            "*http_session",
            "urllib3",
            "*poolmanager",
        )
        for verb in _HTTP_VERBS
    ),
    *_calls("http", "aiohttp.request", "urllib.request.urlopen", "*.urlopen", "urllib2.urlopen", "urlopen"),
    *_calls("http", "trafilatura.fetch_url", "*webbaseloader.load", "*webbaseloader().load", "*.page.content"),
    *_annotations("http", "requests.response", "requests.models.response", "httpx*.response"),
    *_annotations("http", "aiohttp.clientresponse"),
    # Retrievers, query engines, vector stores.
    *_calls("retrieval", "*.get_relevant_documents", "*.aget_relevant_documents", "*.similarity_search*"),
    *_calls("retrieval", "*.asimilarity_search*", "*.max_marginal_relevance_search*"),
    *_calls("retrieval", "*retriever.invoke", "*retriever.ainvoke", "*as_retriever().invoke"),
    *_calls("retrieval", "*as_retriever().ainvoke", "*retriever.batch", "*retriever.retrieve"),
    *_calls("retrieval", "*retriever.aretrieve", "*as_retriever().retrieve", "*as_retriever().aretrieve"),
    *_calls("retrieval", "*retriever.search", "*retriever.query", "*retriever.get_documents", "*retriever"),
    *_calls("retrieval", "*query_engine.query", "*query_engine.aquery", "*as_query_engine().query"),
    *_calls("retrieval", "*as_query_engine().aquery", "*collection.query", "*vectorstore.search"),
    *_calls("retrieval", "*vector_store.search", "*vector_store.query", "*vectorstore.query", "*vectordb.search"),
    *_calls("retrieval", "*vector_db.search", "*vectordb.query", "*vector_db.query", "*pinecone*.query"),
    *_calls("retrieval", "*index.query", "*qdrantclient.search", "*qdrantclient.query_points"),
    *_calls("retrieval", "*qdrant_client.search", "*qdrant.search", "*knowledge_base.search", "*knowledge.search"),
    *_calls("retrieval", "*knowledge_base.query", "*rag.query", "*rag.retrieve", "*reranker.rerank"),
    *_calls("retrieval", "retrieve", "*.retrieve_documents", "*.retrieve_context", "*.search_documents"),
    *_annotations("retrieval", "langchain*.document", "llama_index*.document", "*nodewithscore", "haystack*.document"),
    *_annotations("retrieval", "llama_index*.textnode", "*scoredpoint"),
    # Files. `TRUSTED_PATH` leaves out what is by its name a prompt, a template or configuration.
    *_calls("file", "open", "io.open", "codecs.open", "aiofiles.open", "*.read_text", "*path.open", "*path().open"),
    *_calls("file", "*textloader.load", "*textloader().load", "*pypdfloader.load", "*pypdfloader().load"),
    *_calls("file", "*directoryloader.load", "*directoryreader.load_data", "*directoryreader().load_data"),
    *_calls("file", "*pdfreader.pages[].extract_text", "*page.extract_text", "*linecache.getlines"),
    # Memory.
    *_calls("memory", "*.load_memory_variables", "*.aload_memory_variables", "*memory.search", "*memory.asearch"),
    *_calls("memory", "*memory.get", "*memory.get_all", "*memory.retrieve", "*memory.query", "*memory.recall"),
    *_calls("memory", "*memory.get_messages", "*memory.get_context", "*memory.get_memories", "*memories.search"),
    *_calls("memory", "*memory.get_relevant*", "*mem0.search", "*mem0.get_all", "*memoryclient.search"),
    *_calls("memory", "*memoryclient.get_all", "mem0.memory*.search", "mem0.memory*.get_all", "*zep*.get_memory"),
    *_calls("memory", "*.get_user_memories", "*.search_memories", "*.search_memory", "*.retrieve_memories"),
    *_calls("memory", "*.recall_memories", "*.get_memory_context", "*memory_store.search", "*memory.load"),
    *_attributes("memory", "*memory.buffer", "*memory.chat_memory.messages", "*memory.buffer_as_str"),
    # rung's own items.
    *_calls("reveal", "*.reveal"),
    *_calls("item", "rung.contextstore.add", "rung.contextstore.promote", "rung.contextstore.transform"),
    *_calls("item", "rung.contextstore.user", "rung.contextstore.get", "rung.contextstore.instruct"),
    *_annotations("item", "rung*.contextitem", "rung*.tooloutput", "rung*.evidence", "rung*.memory"),
    *_annotations("item", "rung*.instruction", "rung*.summary", "rung*.usermessage", "contextitem"),
)

ROLES = frozenset({"system", "developer"})
"""Message roles whose content is an instruction."""

SINKS: tuple[Sink, ...] = (
    *(
        Sink(call="*", argument=name, channel=f"`{name}=`")
        for name in (
            "system_prompt",
            "system_message",
            "system_instruction",
            "system_instructions",
            "sys_prompt",
        )
    ),
    Sink(call="*", argument="developer_message", channel="`developer_message=`"),
    Sink(call="*agent", argument="instructions", channel="an agent's instructions"),
    Sink(call="*agent.clone", argument="instructions", channel="an agent's instructions"),
    Sink(call="*agent.run*", argument="instructions", channel="an agent's instructions"),
    Sink(call="*responses.create", argument="instructions", channel="the `instructions` of a response"),
    Sink(call="*responses.stream", argument="instructions", channel="the `instructions` of a response"),
    Sink(call="*responses.parse", argument="instructions", channel="the `instructions` of a response"),
    Sink(call="*assistants.create", argument="instructions", channel="an assistant's instructions"),
    Sink(call="*assistants.update", argument="instructions", channel="an assistant's instructions"),
    Sink(call="*runs.create*", argument="instructions", channel="a run's instructions"),
    Sink(call="*runs.create*", argument="additional_instructions", channel="a run's instructions"),
    Sink(call="*messages.create", argument="system", channel="Anthropic's `system`"),
    Sink(call="*messages.stream", argument="system", channel="Anthropic's `system`"),
    Sink(call="*messages.count_tokens", argument="system", channel="Anthropic's `system`"),
    Sink(call="*ollama*.generate", argument="system", channel="`system=`"),
    Sink(call="*systemmessage", argument="content", position=0, channel="a system message"),
    Sink(call="*systemmessage", argument="text", channel="a system message"),
    Sink(call="*developermessage", argument="content", position=0, channel="a developer message"),
    Sink(call="*systempromptpart", argument="content", position=0, channel="a system prompt part"),
    Sink(call="*chatmessage.from_system", argument="text", position=0, channel="a system message"),
    Sink(
        call="*systemmessageprompttemplate.from_template",
        argument="template",
        position=0,
        channel="a system message template",
    ),
    Sink(call="*prompttemplate.from_template", argument="template", position=0, channel="a prompt template"),
    Sink(call="*prompttemplate", argument="template", position=0, channel="a prompt template"),
    Sink(call="*crewai*.agent", argument="backstory", channel="an agent's backstory"),
    Sink(call="*crewai*.agent", argument="goal", channel="an agent's goal"),
    Sink(call="*set_system_prompt", position=0, channel="a system prompt"),
    Sink(call="*set_system_message", position=0, channel="a system prompt"),
    Sink(call="rung.contextstore.instruct", argument="text", position=0, channel="`store.instruct`"),
    Sink(call="*store.instruct", argument="text", position=0, channel="`store.instruct`"),
    Sink(call="rung*.template", argument="text", position=0, channel="a rung Template"),
    Sink(call="rung*.template.from_text", argument="text", position=0, channel="a rung Template"),
)

DECORATOR_SINKS = ("*.system_prompt", "*.instructions")
"""A function under such a decorator returns an instruction (Pydantic AI)."""

SANITIZERS = (
    "int", "float", "bool", "len", "abs", "round", "sum", "hash", "id", "type", "isinstance",
    "uuid.*", "*.promote", "*.transform", "*.compile", "compile_context", "*.fill", "hashlib.*",
    "*.hexdigest",
)  # fmt: skip
"""What comes out of these is no longer the text that went in."""

CARRIERS = (
    "str", "repr", "format", "list", "tuple", "set", "dict", "sorted", "reversed", "map", "filter",
    "iter", "next", "zip", "enumerate", "max", "min", "copy.copy", "copy.deepcopy", "json.dumps",
    "json.loads", "json.load", "json.dump", "*.dumps", "*.loads", "yaml.*load*", "yaml.*dump",
    "tomllib.load*", "toml.load*", "csv.reader", "csv.dictreader", "textwrap.*", "html.*", "re.sub",
    "re.findall", "re.split", "re.search", "re.match", "pprint.pformat", "itertools.chain*",
    "itertools.islice", "operator.itemgetter()", "ast.literal_eval", "base64.*", "urllib.parse.*",
    "bs4.beautifulsoup", "beautifulsoup", "markdownify*", "html2text*", "*format_docs",
    "*format_documents", "*format_results", "*format_context", "*join_docs", "*truncate*",
    "*stringify*", "*to_markdown", "*to_text", "*clean_text", "*strip_html", "trafilatura.extract",
    "asyncio.gather", "asyncio.wait_for", "asyncio.run", "asyncio.to_thread", "cast", "typing.cast",
    "bytes", "io.stringio", "*.get_response_synthesizer", "*run_until_complete", "functools.reduce",
)  # fmt: skip
"""Functions whose result is made of their arguments. Any other function from elsewhere ends a flow."""

SAFE_ATTRIBUTES = frozenset(
    (
        "status_code", "status", "ok", "id", "item_id", "url", "score", "encoding", "elapsed",
        "type", "role", "returncode", "shape", "size", "__class__", "__name__", "__len__", "dtype",
        "digest", "lineage", "sensitivity", "tenant", "subject", "source", "observed_at",
        "created_at", "key", "is_error", "isError", "closed", "mode", "total_tokens", "usage",
    )
)  # fmt: skip
"""Attributes of untrusted objects that carry no foreign text."""

SAFE_METHODS = frozenset(
    (
        "startswith", "endswith", "count", "index", "find", "rfind", "isdigit", "isalpha",
        "isalnum", "isspace", "islower", "isupper", "isnumeric", "raise_for_status", "close",
        "aclose", "exists", "is_file", "is_dir", "tell", "fileno", "seek", "write", "writelines",
        "flush", "total_seconds", "bit_length", "keys", "__len__", "issubset",
    )
)  # fmt: skip
"""Methods of untrusted objects whose result carries no foreign text."""

ITEM_TEXT = frozenset({"text", "content"})
"""Attributes of an item that are its text."""

ITEM_METHODS = frozenset(
    (
        "strip", "lstrip", "rstrip", "lower", "upper", "title", "casefold", "capitalize", "replace",
        "split", "splitlines", "partition", "rpartition", "removeprefix", "removesuffix",
        "expandtabs", "center", "ljust", "rjust", "zfill", "get", "pop", "values", "items", "copy",
        "popitem",
    )
)  # fmt: skip
"""Methods of an item's text, and of a container of items, whose result is that text or an item again."""

SAFE_NAMES = re.compile(
    r"(?:^|_)(?:sha|sha1|sha256|hash|uuid|digest|checksum|count|length|size|status_code|returncode|timestamp)$",
    re.IGNORECASE,
)
"""A variable of such a name holds a number or a fingerprint, whatever it was cut from."""

STORE_RETURNS = {
    "rung.contextstore.open": "rung.ContextStore",
    "rung.contextstore.scope": "rung.ContextStore",
    "rung.contextstore.seal": "rung.ContextStore",
}
"""Calls that give a store again, so that `view.add` is known to give an item."""

NAMED_PROMPT = re.compile(
    r"(?:^|_)(?:system|sys|developer|dev)_?(?:prompts?|messages?|msg|instructions?|content|text)(?:$|_)"
    r"|^(?:get_|build_|make_|create_|_|agent_|base_|default_)*instructions?$"
    r"|^(?:agent|assistant|base|core)_instructions?$",
    re.IGNORECASE,
)
"""A variable, attribute, key or function of such a name holds an instruction."""

READS_AS_INSTRUCTIONS = re.compile(
    r"<\s*(?:system|instructions?|system_prompt|system_instructions?|rules)\s*>"
    r"|<<SYS>>|<\|im_start\|>\s*system|<\|system\|>|###\s*(?:system|instructions?)\b"
    r"|\A[\s\"'#*]*you are (?:an?|the)\b",
    re.IGNORECASE,
)
"""A text with such a part reads as instructions."""

TRUSTED_PATH = re.compile(
    r"prompt|template|instruction|persona|system|guideline|polic(?:y|ies)|\bskills?\b|\.j2|jinja|config|settings"
    r"|schema|\.toml|\.ya?ml|\.ini|\.cfg|\.env\b|__file__|resources|importlib|package|\.sql\b|\.css|\.js\b"
    r"|version|license|\bfiles\(",
    re.IGNORECASE,
)
"""A path of such a name belongs to the deployment, so its file is no untrusted source."""

WRITE_MODES = frozenset("wax")

NARROW_ROLES = frozenset({"tool", "function", "tool_result", "function_call_output", "tool_call_output"})
"""A message of such a role or type holds a tool's result."""
NARROW_CLASSES = re.compile(r"(?:^|\.)(?:Tool|Function)(?:Message|Result|ReturnPart|ResultBlock|ResultBlockParam)$")
"""A message of such a class holds a tool's result."""
