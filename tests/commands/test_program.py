"""A user's program as a function: its arguments, what it prints, how it fails, how it is ended."""

import stat
import sys

import pytest

from partita.commands.printed import ProgramFailed, last_number
from partita.commands.program import Program, read_template
from partita.commands.supervisor import TAIL
from partita.errors import InvalidInput

PYTHON = sys.executable


def program(code, *arguments, names=(), timeout=None):
    """Python code as a program, with the given arguments."""
    return Program(read_template([PYTHON, "-c", code, *arguments], names), timeout)


# -- placeholders ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("{lr}", "0.1"),
        ("--lr={lr}/{depth}", "--lr=0.1/7"),
        ("{lr}{lr}", "0.10.1"),
        ("{{lr}}", "{lr}"),
        ("{{{lr}}}", "{0.1}"),
        ('{{"a": {{"b": {depth}}}}}', '{"a": {"b": 7}}'),
        ("{fast} {kind}", "true $HOME; 'x' *"),
        ("", ""),
    ],
)
def test_placeholders_become_values(text, filled):
    params = {"lr": 0.1, "depth": 7, "fast": True, "kind": "$HOME; 'x' *"}
    template = read_template([PYTHON, "{lr}{depth}{fast}{kind}", text], params)
    assert template.fill(params) == [PYTHON, "0.17true$HOME; 'x' *", filled]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (False, "false"),
        (3, "3"),
        (1e-7, "1e-07"),
        (0.1 + 0.2, "0.30000000000000004"),
        ("adam", "adam"),
    ],
)
def test_values_reach_the_program_in_full(value, text):
    assert read_template([PYTHON, "{x}"], ["x"]).fill({"x": value})[1] == text


def test_an_argument_is_one_argument_whatever_it_holds():
    code = "import sys; print(int(sys.argv[1:] == ['a b; $(touch x) *', '', '0.5']))"
    run = program(code, "{kind}", "", "{lr}", names=["kind", "lr"])
    assert run(kind="a b; $(touch x) *", lr=0.5) == 1.0
    assert run(kind="a b; $(touch x)", lr=0.5) == 0.0


@pytest.mark.parametrize("text", ["{", "}", "{lr", "lr}", "{}", "{lr:.3f}", "{lr!r}", "{ lr }"])
def test_other_braces_are_refused(text):
    with pytest.raises(InvalidInput, match=r"braces hold the name of a parameter.*\{\{ and \}\}"):
        read_template([PYTHON, "{lr}", text], ["lr"])


def test_unknown_and_unused_names_are_refused():
    with pytest.raises(InvalidInput, match=r"\{rate\}: no parameter .* are lr, depth; add --p"):
        read_template([PYTHON, "{rate}", "{lr}", "{depth}"], ["lr", "depth"])
    with pytest.raises(InvalidInput, match=r"^depth: the program's .* never use it. Put \{depth"):
        read_template([PYTHON, "{lr}"], ["lr", "depth"])
    with pytest.raises(InvalidInput, match=r"^lr, depth: .* never use them"):
        read_template([PYTHON, "{{lr}}"], ["lr", "depth"])


# -- programs that do not exist --------------------------------------------------------------------


def test_missing_programs_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=r"no program to run"):
        read_template([], [])
    with pytest.raises(InvalidInput, match=r"^nosuch: there is no such program on the PATH.$"):
        read_template(["nosuch"], [])
    with pytest.raises(InvalidInput, match=r"^\./nosuch: there is no such program.$"):
        read_template(["./nosuch"], [])
    with pytest.raises(InvalidInput, match=r"not a program"):
        read_template([str(tmp_path)], [])
    with pytest.raises(InvalidInput, match=r"^'': not a program"):
        read_template([""], [])
    script = tmp_path / "train.sh"
    script.write_text("#!/bin/sh\necho 1\n")
    with pytest.raises(InvalidInput, match=r"PATH. For the file in this folder, write \./train.sh"):
        read_template(["train.sh"], [])
    with pytest.raises(InvalidInput, match=r"is not executable. Try chmod \+x \./train.sh"):
        read_template(["./train.sh"], [])
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    assert Program(read_template(["./train.sh"], []))() == 1.0
    script.write_text("echo 1\n")  # no first line to say what reads it
    with pytest.raises(ProgramFailed, match=r"could not be started: .*[Ee]xec format"):
        Program(read_template(["./train.sh"], []))()


def test_the_program_itself_may_be_a_choice():
    template = read_template(["{tool}", "-c", "print(4)"], ["tool"])
    assert Program(template)(tool=PYTHON) == 4.0
    with pytest.raises(ProgramFailed, match=r"could not be started"):
        Program(template)(tool="./nosuch")


# -- the value -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.25\n", 0.25),
        ("epoch 1 loss=0.9\nepoch 2 loss=-0.5\ndone\n", -0.5),
        ("+3", 3.0),
        (".5", 0.5),
        ("loss is 5.", 5.0),
        ("1.5E-3", 1.5e-3),
        ("accuracy: 93%", 93.0),
        ("took 12.5ms", 12.5),
        ("0.3, 0.7\n", 0.7),
        ("score 0.4 on model2, layer-3, float32, v1.2", 0.4),
        ("np.float64(0.93)", 0.93),
        ("array([0.93], dtype=float32)", 0.93),
        ("value 2 info banana infinite", 2.0),
        ("−1 7 €", 7.0),
        ("loss \N{MINUS SIGN}1.5", -1.5),
        ("2e\N{MINUS SIGN}3", 0.002),
        ("0.5 on layer\N{MINUS SIGN}2", 0.5),
        ("1_000", 1000.0),
        ("-12_345.5_0e1_0", -12345.5e10),
        ("1_more", 1.0),
        ("0.5 at 0x1F, 0b101, 0o17", 0.5),
        ("0.5, not 1__000 nor -1.5__5", 0.5),
        ("0bytes", 0.0),
        ("0xylophones", 0.0),
    ],
)
def test_the_last_number_counts(text, value):
    assert last_number(text) == value


@pytest.mark.parametrize("text", ["nan", "loss 0.5\nloss nan", "0.5 -inf", "Infinity", "1e999"])
def test_a_last_number_that_is_not_finite_is_a_failure(text):
    with pytest.raises(ProgramFailed, match=r"the last number it printed is"):
        last_number(text)


def test_no_number_is_a_failure_that_quotes_the_program():
    with pytest.raises(ProgramFailed, match=r"^printed nothing$"):
        last_number(" \n")
    with pytest.raises(ProgramFailed, match=r"^printed no number, but 'bad model2'$"):
        last_number("hello\nbad model2\n\n")
    with pytest.raises(ProgramFailed) as failure:
        last_number("x" * 10_000)
    assert len(str(failure.value)) < 300


@pytest.mark.parametrize("text", ["0x1F", "-0XFF", "1__000", "0b1"])
def test_no_part_of_what_is_no_number_is_one(text):
    with pytest.raises(ProgramFailed, match=r"^printed no number"):
        last_number(text)


def test_colours_are_not_numbers():
    assert program(r"print('\x1b[1;32m0.75\x1b[0m \x1b[K')")() == 0.75


def test_only_stdout_counts_and_bytes_of_any_kind_are_read():
    code = (
        r"import sys; sys.stdout.buffer.write(b'\xff\xfe 0.5 \x00\x80'); print(9, file=sys.stderr)"
    )
    assert program(code)() == 0.5


def test_a_long_output_is_read_from_its_end():
    assert program("print('1 ' * 3_000_000); print(42)")() == 42.0
    assert program("print('{{\"a\":1,' * 300_000 + '\"loss\":0.25}}', end='')")() == 0.25


@pytest.mark.parametrize(
    "digits", ["'123456789'", "'-1.5e123456789'", "'9' * 100_000", "'1.' + '5' * 9"]
)
def test_a_number_whose_beginning_is_not_kept_is_not_read(digits):
    """Half of it would be another number."""
    tail = ",x" * ((TAIL - 6) // 2)
    with pytest.raises(ProgramFailed, match=r"^printed no number, but '…,x,x") as failure:
        program(f"print({digits} + {tail!r}, end='')")()
    assert len(str(failure.value)) < 300
    assert program("print('123456,' + 'x,' * 30_000, end='')")() == 123456.0  # kept as a whole


# -- failures --------------------------------------------------------------------------------------


def test_a_non_zero_exit_is_a_failure_even_with_a_number():
    with pytest.raises(ProgramFailed, match=r"^exit code 3: 'out of memory'$"):
        program("import sys; print(1); print('out of memory', file=sys.stderr); sys.exit(3)")()
    with pytest.raises(ProgramFailed, match=r"^exit code 3: '1'$"):
        program("import sys; print(1); sys.exit(3)")()
    with pytest.raises(ProgramFailed, match=r"^killed by SIGKILL$"):
        program("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")()


def test_a_failure_quotes_little_of_a_long_output():
    code = "import sys; print('x' * 10**6 + 'end', file=sys.stderr); sys.exit(3)"
    with pytest.raises(ProgramFailed, match=r"^exit code 3: 'x+…'$") as failure:
        program(code)()
    assert len(str(failure.value)) < 300


def test_stdin_is_empty():
    assert program("import sys; print(len(sys.stdin.read()))")() == 0.0


def test_a_failure_knows_its_command():
    with pytest.raises(ProgramFailed) as failure:
        program("raise SystemExit(1)", "{x}", names=["x"])(x=3)
    assert failure.value.command == (PYTHON, "-c", "raise SystemExit(1)", "3")
