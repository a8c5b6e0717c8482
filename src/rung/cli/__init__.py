"""The command `rung`: thin commands over public names.

Exit codes: 0 fine; 1 refused, by a budget, a policy, a scope or a finding; 2 used or configured wrongly; 3 a bug of
rung's own.
"""

from __future__ import annotations

import io
import os
import sys


def main() -> None:
    """Run the command line.

    What a person can mend is told in one line on standard error. Anything else is a bug, and shows its traceback.
    """
    try:
        code = _run()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough. What is still buffered must not fail again when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except KeyboardInterrupt:
        code = _told("interrupted", 130)
    except Exception:
        import traceback

        traceback.print_exc()
        code = _told("this is a bug of rung's own", 3)
    sys.exit(code)


def _run() -> int:
    from rung.cli.app import UsageError, command
    from rung.errors import RungError

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a character shows its number.
            stream.reconfigure(errors="backslashreplace")
    try:
        return command()
    except UsageError as problem:
        return _told(str(problem), 2)
    except RungError as problem:
        return _told(str(problem), exit_code(problem))
    except BrokenPipeError:
        raise
    except OSError as problem:
        named = f"`{problem.filename}`: " if problem.filename else ""
        return _told(
            f"{named}{(problem.strerror or 'input or output failed').lower()} (check the path and its rights)", 2
        )


def exit_code(problem: Exception) -> int:
    """2 for what is to be mended in a command, a file or an installation; 1 for what rung refused."""
    from rung import errors

    if isinstance(problem, errors.PolicyError | errors.ForeignItemError | errors.IntegrityError):
        return 1
    mend = errors.ConfigError | errors.InputError | errors.MissingExtraError | errors.StoreError | errors.ModelAuthError
    return 2 if isinstance(problem, mend) else 1


def _told(message: str, code: int) -> int:
    print(f"rung: {' '.join(message.split())}", file=sys.stderr)
    return code
