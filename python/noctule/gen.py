"""The generator, for builds of Python packages: ``python -m noctule.gen topics.toml --out DIR``.

Exit codes: 0 done; 1 with ``--check``, the folder is stale; 2 wrong input, with every fault where it stands.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from noctule._native import NoctuleError, generate

__all__ = ["generate", "main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Generate what the arguments name, those of the command line if there are none; gives the exit code."""
    parser = argparse.ArgumentParser("python -m noctule.gen", description="Generate typed endpoints from a topics.toml.")
    parser.add_argument("topics", type=Path, metavar="topics.toml", help="the programs of a system, and what flows between them")
    parser.add_argument("--out", type=Path, required=True, help="where the files go; only what has changed is written")
    parser.add_argument("--check", action="store_true", help="write nothing: exit code 1 if a file is not what it would be")
    parser.add_argument("--templates", type=Path, help="a folder of templates that are added or replace others")
    words = parser.parse_args(arguments)
    try:
        written, removed, warnings = generate(words.topics, words.out, templates=words.templates, check=words.check)
    except NoctuleError as error:
        print(error, file=sys.stderr)
        return 2
    for warning in warnings:
        print(warning, file=sys.stderr)
    for path in removed:
        print(f"{words.out / path} is no longer generated", file=sys.stderr)
    print(f"{len(written)} files {'differ in' if words.check else 'written to'} {words.out}", file=sys.stderr)
    return 1 if words.check and (written or removed) else 0


if __name__ == "__main__":
    sys.exit(main())
