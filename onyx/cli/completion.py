"""``onyx completion``: the script by which a shell completes verbs, options and files."""

from __future__ import annotations

import argparse

from onyx.cli.values import tell_of
from onyx.cli.verb import COMMON, VERBS, Subparsers, add_verb

DETAILS = """\
It is printed; where it belongs depends on the shell. Print it anew after an upgrade."""

EXAMPLES = """\
  onyx completion bash > ~/.local/share/bash-completion/completions/onyx
  onyx completion zsh > "${fpath[1]}/_onyx"
  onyx completion tcsh >> ~/.tcshrc
"""

SHELLS = ("bash", "zsh", "tcsh")
_COMMON = {"--help": "show the help", **{usage.split()[0]: says for usage, says in COMMON.items()}}


def add_parser(subparsers: Subparsers) -> None:
    shell = f"shell SHELL{{{','.join(SHELLS)}}}"
    takes = {shell: ", ".join(SHELLS), "--json": "print it as one JSON object"}
    add_verb(subparsers, "completion", "", run, takes, details=DETAILS, examples=EXAMPLES)


def run(arguments: argparse.Namespace) -> None:
    import shtab  # noqa: PLC0415 - only for this

    from onyx.cli.main import build_parser  # noqa: PLC0415 - which imports this

    parser = build_parser(VERBS)
    _complete(parser)
    script = shtab.complete(parser, arguments.shell)
    tell_of(arguments, {"shell": arguments.shell, "script": script}, script)


def _complete(parser: argparse.ArgumentParser) -> None:
    """Options that each help leaves out are completed, too; an argument is a file where a word for
    one stands for it in the help."""
    import shtab  # noqa: PLC0415 - only for this

    for action in parser._actions:
        common = [_COMMON[option] for option in action.option_strings if option in _COMMON]
        if common and action.help is argparse.SUPPRESS:
            action.help = common[0]
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                _complete(below)
        elif isinstance(action.metavar, str) and "FILE" in action.metavar:
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # as shtab has it
        elif isinstance(action.metavar, str) and "DIR" in action.metavar:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
