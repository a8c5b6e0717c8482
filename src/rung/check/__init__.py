"""`rung check`: finds where text from tools, retrieval, memory and files is built into instructions.

Read `run.py` first, then `statements.py` (how text is followed) and `tables.py` (sources and sinks as data).
The checked code is parsed and never imported.
"""

from rung.check.config import CheckConfig, load_config
from rung.check.finding import Finding, Step
from rung.check.formats import FORMATS, render
from rung.check.rules import RULES, Rule, rule_pages
from rung.check.run import check_paths, check_source, run_check
from rung.check.tables import Sink, Source

__all__ = [
    "FORMATS",
    "RULES",
    "CheckConfig",
    "Finding",
    "Rule",
    "Sink",
    "Source",
    "Step",
    "check_paths",
    "check_source",
    "load_config",
    "render",
    "rule_pages",
    "run_check",
]
