"""`partita theory`, its figure, and the page of the docs."""

import argparse
import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest

from partita import _optional as optional
from partita import theory
from partita.commands import theory as command
from partita.theory import figure

DOCS = Path(__file__).parents[2] / "docs"


def run(*arguments):
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers(dest="command"))
    return command.run(parser.parse_args(["theory", *map(str, arguments)]))


def rows_of(text, heading):
    lines = text[text.index(heading) :].splitlines()[2:]
    table = itertools.takewhile(lambda line: line.startswith("|"), lines)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def test_table(capsys):
    assert run("table", "--dim", 1, 3, "--nu", "0.5", "3/2", "inf") == 0
    out = capsys.readouterr().out
    head, _, *rows = rows_of(out, "Regret:")
    assert head[1:] == [f"d={d}, ν={nu}" for d in (1, 3) for nu in ("1/2", "3/2", "∞")]
    values = dict(zip((row[0] for row in rows), (row[1:] for row in rows), strict=True))
    assert values["π-GP-UCB"] == ["–", "0.667", "0.500", "–", "0.833", "0.500"]
    assert values["HOO"] == ["0.750", "0.667", "0.667", "0.875", "0.800", "0.800"]
    assert len(rows) == len(theory.names("regret"))
    assert rows_of(out, "Simple regret lower bound:")[2][1:3] == ["−0.250", "−0.375"]


def test_exact_table(capsys):
    assert run("table", "--dim", 3, "--nu", "1.5", "--exact") == 0
    rows = dict(rows_of(capsys.readouterr().out, "Regret:"))
    assert rows["π-GP-UCB"] == "5/6"
    assert rows["uniform sampling"] == "1"


def test_list_has_everything(capsys):
    assert run("list") == 0
    out = capsys.readouterr().out
    for name in theory.names():
        each = theory.get(name)
        assert f"| `{name}`" in out
        assert each.formula in out
        assert each.note in out
    row = next(line for line in out.splitlines() if line.startswith("| `pi-gp-ucb`"))
    assert "‖f‖ ≤ B, ν > 1 " in row
    assert "Theorem 1" in row


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("table", "--nu", "x"), "smoothness 'x': give a positive number"),
        (("table", "--nu", "0"), "smoothness '0'"),
        (("table", "--nu", "1/0"), "smoothness '1/0'"),
        (("table", "--nu", "nan"), "smoothness 'nan'"),
        (("table", "--dim", "0"), "dim=0: give the dimension"),
        (("plot", "--dims", "0"), "dim=0: give the dimension"),
        (("plot", "--dims", *range(1, 14)), "13 dimensions: give from 1 to 12"),
        (("plot", "--nu-max", "1"), "nu_max=1.0: give a finite smoothness above 1"),
        (("plot", "--nu-max", "inf"), "nu_max=inf"),
        (("plot", "--out", "a.pdf"), "--out a.pdf: give a file that ends in .png or .svg"),
        (("plot", "--out", ""), "--out"),
        (("plot", "--dims", 1, "--out", "no/such/a.png"), "no/such/a.png: No such file"),
    ],
)
def test_refusals_are_one_line(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"partita: {message}")
    assert captured.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_without_matplotlib(monkeypatch, capsys, tmp_path):
    def missing(name):
        raise ImportError("none here")

    monkeypatch.setattr(optional, "import_module", missing)
    assert run("plot", "--out", tmp_path / "a.png") == 2
    assert "pip install 'partita[plot]'" in capsys.readouterr().err


def test_plot_writes_what_was_asked(tmp_path, capsys):
    assert run("plot", "--dims", 2, "--out", tmp_path / "both") == 0
    assert run("plot", "--dims", 2, "--out", tmp_path / "one.SVG") == 0
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(files) == {"both.png", "both.svg", "one.SVG"}
    assert files["both.png"].startswith(b"\x89PNG")
    assert b"<svg" in files["one.SVG"]
    assert files["one.SVG"] == files["both.svg"]  # the same every time
    assert f"written to {tmp_path / 'one.SVG'}\n" in capsys.readouterr().out


@pytest.mark.parametrize(("dims", "nu_max"), [((1, 2, 3), 5), ((2,), 1.5), ((1, 4, 2, 6), 30)])
def test_the_figure(dims, nu_max, monkeypatch):
    kept = []
    monkeypatch.setattr(figure.lines, "saved", saved_to(kept, figure.lines.saved))
    figure.draw(dims, nu_max)
    (drawn,) = kept
    drawn.draw_without_rendering()
    panels = [axes for axes in drawn.axes if axes.axison]
    assert len(panels) == len(dims)
    texts = [text.get_window_extent() for text in drawn.texts]
    for panel, d in zip(panels, dims, strict=True):
        assert panel.get_title(loc="left") == f"d = {d}"
        check_lines(panel, d, nu_max)
        labels = [text.get_window_extent() for text in panel.texts]
        assert len(labels) == len(figure.LINES)
        # Names lie beside the panel, inside the figure, and apart from all else.
        frame = panel.get_window_extent()
        assert all(label.x0 > frame.x1 for label in labels)
        assert all(label.x1 < drawn.bbox.x1 for label in labels)
        everything = [
            *labels,
            *texts,
            *(other.get_tightbbox() for other in panels if other != panel),
        ]
        everything += [panel._left_title.get_window_extent()]
        for one, two in itertools.product(labels, everything):
            assert one is two or not shrunk(one).overlaps(shrunk(two))
        assert not any(panel._left_title.get_window_extent().overlaps(text) for text in texts)
    assert all(text.x1 < drawn.bbox.x1 for text in texts)


def saved_to(kept, save):
    def saved(drawn, title, text):
        kept.append(drawn)
        drawn.savefig = lambda *_, **__: None  # looked at, not written
        return save(drawn, title, text)

    return saved


def shrunk(box):
    """A box without the empty space that fonts keep above and below letters."""
    return box.padded(-0.12 * box.height)


def check_lines(panel, d, nu_max):
    """Every line is drawn where its proof holds, at its values."""
    drawn = [line for line in panel.lines if len(line.get_xdata()) > 1]
    for line, wanted in zip(drawn, figure.LINES, strict=True):
        exponent = theory.get(wanted.exponent)
        x, y = line.get_data()
        assert x[0] == pytest.approx(exponent.proven_above, abs=0.01)
        assert x[-1] == nu_max
        assert y == pytest.approx(exponent(d, x))
    (shade,) = panel.collections
    x, y = shade.get_paths()[0].vertices.T
    lower, best = theory.get("lower-bound"), [theory.get(n) for n in figure._OPTIMISTIC]
    for nu, value in zip(x[1:-1], y[1:-1], strict=True):
        known = min(e(d, nu) for e in best if e.proven_above <= nu)
        assert min(abs(value - lower(d, nu)), abs(value - known)) < 1e-9


# -- the page, and imports ----------------------------------------------------------------------


def test_the_page_has_what_the_command_prints(capsys):
    page = (DOCS / "theory.md").read_text(encoding="utf-8")
    for arguments in (("list",), ("table", "--dim", 1, 2, 3, "--nu", "1/2", "3/2", "5/2")):
        assert run(*arguments) == 0
        assert capsys.readouterr().out in page
        assert f"partita theory {' '.join(map(str, arguments))}" in page
    for target in re.findall(r"\]\((figures/[^)]*)\)", page):
        assert (DOCS / target).stat().st_size < 400_000


def test_the_command_is_light():
    script = "import sys, partita.commands.theory; print('numpy' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
