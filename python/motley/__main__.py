"""`python3 -m motley estimate FOLDER --cluster FILE --tokens N`: whether a model fits a cluster, by its configuration alone."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, Dict, List

from .errors import MotleyError
from .estimate import estimate


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m motley", description="Motley for PyTorch models (docs/python.md)")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("estimate", help="plan a model by its configuration alone")
    command.add_argument("folder", help="a Hugging Face folder of a causal language model, or its config.json")
    command.add_argument("--cluster", required=True, metavar="FILE", help="the machines and links")
    command.add_argument("--tokens", required=True, type=int, metavar="N", help="the number of tokens of a sample")
    command.add_argument("--links", metavar="FILE", help="the file of motley probe --output")
    command.add_argument("--set", action="append", default=[], metavar="KEY=VALUE",
                         help="a key of the configuration, e.g. train.precision=bf16")
    given = parser.parse_args()
    try:
        found = estimate(given.folder, given.cluster, tokens=given.tokens, links=given.links, **_settings(given.set))
    except MotleyError as error:
        print(f"motley: {error}", file=sys.stderr)
        return 1
    for notice in found.notices:
        print(f"motley: notice: {notice}", file=sys.stderr)
    print(found.text, end="")
    return 0 if found.fits else 1


def _settings(texts: List[str]) -> Dict[str, Any]:
    found: Dict[str, Any] = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator:
            raise MotleyError(f"--set {text} has no value. Pass KEY=VALUE")
        if key.count(".") > 1:
            raise MotleyError(f"--set {text}: a key is a section and a name, such as train.precision. See `motley config`")
        try:
            found[key.replace(".", "__")] = json.loads(value)
        except ValueError:
            found[key.replace(".", "__")] = value
    return found


sys.exit(main())
