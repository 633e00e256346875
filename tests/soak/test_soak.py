"""The quick form of the soak, and that it finds what it is there to find."""

import json
import os
import time

import pytest

import partita as pt
from partita.policies import registry
from soak import command, files, fuzz, kills, machine, parts
from soak.cases import case_of, domain_of
from soak.workers import each

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="it needs processes as of Unix")


def case_with(wanted):
    """The first case that is as wanted."""
    return next(case for case in map(case_of, range(10_000)) if wanted(case))


# -- the quick forms -------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", registry.names())
def test_calls_at_random(policy):
    case = case_with(lambda c: c.policy == policy and 10 < len(c.ops) < 40)
    assert machine.run(case)


def test_a_few_kills():
    assert kills.kill_many(3, kills=3)["kills"] >= 3


def test_a_few_damaged_files():
    ends = files.damage_many(1)
    assert ends["files"] == files.FILES
    assert min(ends["refused"], ends["as before"]) > 3


# -- controls --------------------------------------------------------------------------------------


def is_uniform(case):
    """A case of the plainest policy that has some of everything."""
    return (
        case.policy == "uniform"
        and case.kind == "box"
        and not case.by_optimizer
        and {"ask", "refuse", "recommend", "pickle"} <= {op.verb for op in case.ops}
    )


def outside(self):
    number, x = propose(self)
    return number, x + 1e9


def nan_mean(self):
    return recommend(self)._replace(mean=float("nan"))


def forgetful(self, x):
    self._told += 1


def warns(self, *args):
    import warnings

    warnings.warn("not ours", RuntimeWarning, stacklevel=1)
    return record(self, *args)


Uniform = pt.UniformSampling
propose, recommend, record = Uniform._propose, Uniform.recommend, Uniform._record


@pytest.mark.parametrize(
    ("name", "broken", "words"),
    [
        ("_propose", outside, "outside|InvalidInput: x="),
        ("recommend", nan_mean, "mean nan"),
        ("cancel", forgetful, "counts are"),
        ("_record", warns, "not ours"),
        ("_locate", lambda self, points: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_the_fuzz_finds_broken_promises(monkeypatch, name, broken, words):
    wanted = {"_propose": "ask", "_record": "tell", "_locate": "add"}.get(name, name)
    case = case_with(lambda c: is_uniform(c) and wanted in {op.verb for op in c.ops})
    machine.run(case)
    monkeypatch.setattr(Uniform, name, broken)
    with pytest.raises(machine.Fault, match=words):
        machine.run(case)


def test_the_fuzz_finds_questions_that_change_something(monkeypatch):
    case = case_with(lambda c: is_uniform(c) and c.ops[-1].verb == "ask")

    def asks(self):
        answer = recommend(self)
        propose(self)
        return answer

    monkeypatch.setattr(Uniform, "recommend", asks)
    with pytest.raises(machine.Fault, match="without questions"):
        machine.run(case)


def test_the_fuzz_finds_calls_that_take_too_long(monkeypatch):
    monkeypatch.setattr(machine, "LONGEST_CALL", -1.0)
    with pytest.raises(machine.Fault, match="took"):
        machine.run(case_with(is_uniform))


def test_a_failing_case_is_made_short(monkeypatch):
    case = case_with(lambda c: is_uniform(c) and len(c.ops) > 30)
    monkeypatch.setattr(Uniform, "recommend", nan_mean)
    with pytest.raises(machine.Fault) as caught:
        machine.run(case)
    short = fuzz.shortened(case, fuzz._kind(caught.value), seconds=20)
    assert [op.verb for op in short.ops][-1] == "recommend"
    assert len(short.ops) <= 2


def test_a_case_is_made_by_its_seed_alone():
    assert case_of(5) == case_of(5)
    assert case_of(5) != case_of(6)
    kinds = {(c.policy, c.kind, c.by_optimizer) for c in map(case_of, range(600))}
    assert len(kinds) > 80
    assert {c.policy for c in map(case_of, range(600))} >= set(registry.names())
    boxes = (c for c in map(case_of, range(1000)) if c.kind == "box" and c.policy == "soo")
    assert {1, 2, 30} <= {domain_of(case).dim for case in boxes}


def test_lost_tells_are_found(monkeypatch):
    """One acknowledged that is not in the file."""
    acknowledged = kills.acknowledged

    def one_more(lines):
        asked, told = acknowledged(lines)
        return asked, {**told, 10**6: 1.0} if told else told

    monkeypatch.setattr(kills, "acknowledged", one_more)
    with pytest.raises(AssertionError):
        kills.kill_many(3, kills=3)


def test_a_process_that_ends_before_it_is_killed_is_no_kill(monkeypatch):
    monkeypatch.setattr(kills, "WAYS", (lambda path, out, space, settings: None,))
    with pytest.raises((AssertionError, IndexError)):
        kills.kill_many(3, kills=3)


def test_other_values_of_a_damaged_file_are_found(monkeypatch):
    use = files.use

    def other(path):
        said = use(path)
        return said and [(*row[:2], 7.0, *row[3:]) for row in said]

    monkeypatch.setattr(files, "use", other)
    with pytest.raises(AssertionError, match="other values"):
        files.damage_many(1)


# -- the frame -------------------------------------------------------------------------------------


def misbehave(seed):
    if seed == 2:
        os._exit(3)
    if seed == 3:
        time.sleep(60)
    if seed == 4:
        raise ValueError("mine")
    return {"things": seed}


def test_a_process_may_die_hang_or_raise():
    outcomes = {o.item: o for o in each(misbehave, [1, 2, 3, 4, 5], workers=2, limit=1.0)}
    assert outcomes[1].result == {"things": 1}
    assert outcomes[5].result == {"things": 5}
    assert "exit code 3" in outcomes[2].fault
    assert "no end after 1 s" in outcomes[3].fault
    assert "ValueError: mine" in outcomes[4].fault


def test_a_soak_goes_on_where_it_was_and_says_what_failed(tmp_path, monkeypatch, capsys):
    part = parts.Part("toy", "a toy", lambda seed: {"things": seed}, 5.0, "things", 10)
    monkeypatch.setattr("soak.command.PARTS", {"toy": part})
    monkeypatch.setattr("soak.diary.PARTS", {"toy": part})
    given = ["toy", "--out", str(tmp_path), "--workers", "1"]
    assert command.main([*given, "--share", "0.3"]) == 0  # 1 + 2
    assert command.main(given) == 0  # + 3 + 4
    assert "things 10" in capsys.readouterr().out
    lines = (tmp_path / "toy-1.jsonl").read_text().splitlines()
    assert [json.loads(line)["seed"] for line in lines] == [1, 2, 3, 4]
    bad = parts.Part("toy", "a toy", misbehave, 5.0, "things", 7)
    monkeypatch.setattr("soak.command.PARTS", {"toy": bad})
    given[2] = str(tmp_path / "bad")
    assert command.main([*given, "--seed", "4"]) == 1
    assert "python tests/soak toy --only-case 4" in capsys.readouterr().out
    assert command.main(["toy", "--only-case", "4"]) == 1
    assert command.main(["toy", "--only-case", "5"]) == 0
    assert command.main(["none"]) == 2
    figures = json.loads((tmp_path / "bad" / "figures.json").read_text())
    assert figures["parts"]["toy"]["faults"][0]["seed"] == 4


def test_figures_go_into_the_docs(tmp_path, monkeypatch):
    docs = tmp_path / "reliability.md"
    docs.write_text(f"before\n{command.BEGIN}\nold\n{command.END}\nafter\n")
    monkeypatch.setattr(command, "DOCS", docs)
    assert command.main(["report", "--docs", "--out", str(tmp_path)]) == 2
    part = {"title": "a toy", "cases": 2, "figures": {"things": 1234}, "faults": []}
    facts = {"partita": "1", "python": "3", "system": "Linux", "parts": {"toy": part}}
    (tmp_path / "figures.json").write_text(json.dumps(facts))
    assert command.main(["report", "--docs", "--out", str(tmp_path)]) == 0
    text = docs.read_text()
    assert "| a toy | 2 cases: things 1,234 | 0 |" in text
    assert "old" not in text
    assert text.startswith("before")
    assert text.endswith("after\n")
