"""Messages, help texts, docstrings and comments use the field's words, not Partita's own."""

import io
import re
import tokenize
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "partita"
#: Words that nobody else uses so, and what to write instead.
BANNED = {
    r"plays?|played|playing": "evaluate, choose, support, run",
    r"knobs?": "setting",
    r"so many": "the number, by its name",
    r"yes[- ]and[- ]no": "boolean",
    r"none for nothing": "or None if ...",
    r"for ever": "forever",
    r"anew": "again",
    r"if need be": "optionally, if needed",
    r"(?:is|has) no use": "does not use",
    r"(?<!there )(?:is|are) no (?:ranges?|numbers?|policy|policies|arms?|texts?|faults?)": "is not",
    r"luckiest": "best value observed",
    r"untold": "unknown",
    r"nobody|somebody|whoever": "who, by name: another process, the caller, the user",
}
#: Code in prose, and fields of f-strings, which may have names of ours.
CODE = re.compile(r"`[^`]*`|\{[^{}]*\}")
WORDS = {re.compile(rf"\b(?:{words})\b", re.IGNORECASE): use for words, use in BANNED.items()}


def prose(text):
    """Lines of comments, docstrings and messages in a source text, with their numbers."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = tokenize.tok_name[token.type]
        # Strings without a space are names and keys; Python 3.12 has tokens for parts of f-strings.
        if kind == "COMMENT" or (kind in {"STRING", "FSTRING_MIDDLE"} and " " in token.string):
            for i, line in enumerate(token.string.splitlines()):
                yield token.start[0] + i, CODE.sub("", line)


def found_in(text):
    """What is wrong with the prose of a source text, a line each."""
    return [
        f"{number}: {match[0]!r}, write: {use}"
        for number, line in prose(text)
        for pattern, use in WORDS.items()
        for match in pattern.finditer(line)
    ]


def files():
    return sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))


@pytest.mark.parametrize("name", files())
def test_source_has_no_private_words(name):
    text = (SOURCE / name).read_text(encoding="utf-8")
    assert found_in(text) == []


@pytest.mark.parametrize(
    "line",
    [
        "#: Plays that are pending.",
        'raise ValueError(f"{x!r} is no range: give two numbers")',
        '"""What counts, at which so many others count."""',
        'help="a knob, for ever"',
        "x = 1  # nobody knows",
    ],
)
def test_private_words_are_found(line):
    assert found_in(line)


@pytest.mark.parametrize(
    "line",
    [
        "plays = self._pending_plays()",
        '"""See `plays` and `Game.play`."""',
        'raise StudyError(f"there is no policy {plays}")',
        "# the log is replayed",
        'kinds = ["play"]',
    ],
)
def test_names_and_plain_words_are_allowed(line):
    assert not found_in(line)


def test_minimize_and_maximize_describe_the_same_parameters():
    from partita import maximize, minimize

    def without_own_words(function):
        text = function.__doc__.partition("    Examples\n")[0]
        return re.sub(r"(?i)(max|min)imi[sz]e|smallest|largest", "", text)

    assert without_own_words(minimize) == without_own_words(maximize)
    for name in minimize.__annotations__.keys() - {"return"}:
        assert re.search(rf"^    (?:\w+, )*{name}(?:, \w+)*$", minimize.__doc__, re.MULTILINE), name
