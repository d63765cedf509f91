"""What the tab key offers in bash, zsh and fish: methods, their fields, options, members of an answer."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, Final

from better_compute.client.shapes import Shape
from better_compute.client.shell import fields, methods

_BASH: Final = """\
_better_compute() {
  if [[ ${COMP_WORDS[COMP_CWORD-1]} == --token-file ]]; then compopt -o default; COMPREPLY=(); return; fi
  local IFS=$'\\n'
  COMPREPLY=($(better-compute --complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace
}
complete -F _better_compute better-compute
"""
_ZSH: Final = """\
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i }
_better_compute() {
  if [[ ${words[CURRENT-1]} == --token-file ]]; then _files; return; fi
  local -a found
  found=("${(@f)$(better-compute --complete -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
  compadd -S '' -- ${(M)found:#*=}
  compadd -- ${found:#*=}
}
compdef _better_compute better-compute
"""
_FISH: Final = """\
complete -c better-compute -f -a '(better-compute --complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
complete -c better-compute -l token-file -r -F
"""
#: What each shell evaluates to complete the program.
SCRIPTS: Final = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def split(parser: argparse.ArgumentParser, words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The words that are no options, and the options with what follows each; the last word is being typed."""
    valued = {option for action in parser._actions if action.nargs is None for option in action.option_strings}
    plain: list[str] = []
    given: dict[str, str] = {}
    left = iter(words)
    for word in left:
        if word in valued:
            given[word] = next(left, "")
        elif word.startswith("--") and "=" in word:
            name, _, value = word.partition("=")
            given[name] = value
        elif not word.startswith("-"):
            plain.append(word)
    return plain, given


def offered(document: Mapping[str, Any], words: Sequence[str], parser: argparse.ArgumentParser) -> list[str]:
    """What the last of ``words`` may become."""
    *before, last = words or [""]
    plain = split(parser, before)[0]
    method = plain[0] if plain else None
    operations = methods(document)
    if last.startswith("-"):
        return [each for each in _options(parser) if each.startswith(last)]
    asked = before[-1] if before else ""
    if asked in ("--wait", "--unless"):
        names = Shape.of_answer(document, method).names() if method is not None and method in operations else []
        return [f"{each}=" for each in names if each.startswith(last)]
    action = next((each for each in parser._actions if asked in each.option_strings and each.nargs is None), None)
    if action is not None:
        return [str(each) for each in action.choices or () if str(each).startswith(last)]
    if method is None:
        return sorted(each for each in operations if each.startswith(last))
    given = {word.partition("=")[0].rstrip(":") for word in plain[1:]}
    return [f"{each}=" for each in fields(document, method) if each.startswith(last) and each not in given]


def _options(parser: argparse.ArgumentParser) -> list[str]:
    shown = (action for action in parser._actions if action.help is not argparse.SUPPRESS)
    return [option for action in shown for option in action.option_strings if option.startswith("--")]
