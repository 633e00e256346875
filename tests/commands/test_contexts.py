"""Contexts from a shell: given when a study is created, asked for, shown, refused."""

import json

import pytest

import partita as pt
from partita.commands.main import main
from partita.study import Study

CREATE = ["--param", "price:1:10", "--context", "hour:0:24", "--context", "segment:new,old"]
NOON = ["--context", "hour=12.5", "--context", "segment=old"]


def test_a_study_with_contexts_from_the_shell_is_that_of_python(run, path):
    assert run("create", path, *CREATE, "--direction", "maximize", "--drift") == (0, "", "")
    twin = pt.Optimizer(
        {"price": (1, 10)},
        context={"hour": (0, 24), "segment": ["new", "old"]},
        direction="maximize",
        drift=True,
    )
    for i in range(8):
        context = {"hour": 3.0 * i, "segment": "new" if i % 2 else "old"}
        words = [f"--context={name}={value}" for name, value in context.items()]
        expected = twin.ask(context=context)
        code, out, err = run("ask", path, *words, *(["--json"] if i % 2 else []))
        assert (code, err) == (0, "")
        if i % 2:
            trial = {"number": i, "params": expected.params, "context": context}
            assert json.loads(out) == trial
        else:
            assert out.split() == [
                str(i),
                f"price={expected.params['price']}",
                f"hour={3.0 * i}",
                f"segment={context['segment']}",
            ]
        run("tell", path, i, i / 10)
        twin.tell(expected, i / 10)
    code, out, _ = run("show", path)
    assert code == 0
    assert "each context has another answer: give --context for each of hour, segment" in out
    code, out, _ = run("show", path, *NOON)
    assert "recommended for hour=12.5 segment=old" in out
    code, out, _ = run("show", path, *NOON, "--json")
    shown, best = json.loads(out), twin.recommend(context={"hour": 12.5, "segment": "old"})
    assert (shown["params"], shown["value"]) == (best.params, best.mean)
    assert Study.open(path).settings.drift is True


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--context", "hour=12"], "the context segment is missing"),
        (["--context", "day=1"], "give hour=..., segment=..."),
        (["--context", "hour"], "give hour=..., segment=..."),
        (["--context", "hour=noon", "--context", "segment=new"], "noon is not a number"),
        (["--context", "hour=30", "--context", "segment=new"], "from 0.0 to 24.0"),
        (["--context", "hour=3", "--context", "segment=vip"], "give one of new, old"),
        (["--context", "hour=3", "--context", "hour=4"], "hour is given twice"),
        ([], "is missing"),
    ],
)
def test_contexts_that_cannot_be_are_a_line_and_change_nothing(run, path, words, says):
    run("create", path, *CREATE)
    code, out, err = run("ask", path, *words)
    assert (code != 0, out) == (True, "")
    assert says in err
    assert len(err.splitlines()) == 1
    assert len(Study.open(path).trials) == 0


def test_wrong_ranges_and_studies_without_contexts(run, path):
    code, _, err = run("create", path, "--param", "x:0:1", "--context", "hour:24:0")
    assert code != 0
    assert "--context hour:24:0" in err
    assert not path.exists()
    run("create", path, "--param", "x:0:1")
    code, _, err = run("ask", path, "--context", "hour=1")
    assert code != 0
    assert "has no context" in err


def test_show_draws_the_best_choice_along_the_first_context(tmp_path, capsys):
    path = str(tmp_path / "shop.db")
    context = {"hour": (0, 24), "segment": ["new", "old"]}
    with pt.Study.open(path, {"price": (1, 9)}, context=context) as study:
        rows = [{"price": float(i + 1), "hour": 3.0 * i, "segment": "new"} for i in range(8)]
        study.add(rows, [float(i) for i in range(8)])
    given = ["--context", "hour=3", "--context", "segment=old"]
    for arguments in ([], given):
        image = tmp_path / f"{len(arguments)}.png"
        assert main(["show", path, *arguments, "--plot", str(image)]) == 0
        assert image.stat().st_size > 1000
    assert "figure written to" in capsys.readouterr().err
