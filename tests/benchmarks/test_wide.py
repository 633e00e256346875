"""Problems of many dimensions: their optima, and the command that plays them."""

import high_dim
import numpy as np
import pytest
from versus import problems, wide


@pytest.mark.parametrize("name", list(wide.DIMS))
def test_no_value_is_above_the_best(name):
    problem = problems.build(name, "tenth", 3)
    values = problem.function(np.random.default_rng(0).random((200, problem.dim)))
    assert values.shape == (200,)
    assert np.isfinite(values).all()
    assert values.max() <= problem.best
    assert problem.uniform_regret > 0


@pytest.mark.parametrize("title", ["sphere", "ackley", "rosenbrock", "four"])
def test_the_optimum_is_off_the_centre(title):
    random = np.random.default_rng(5)
    state = random.bit_generator.state
    cost = getattr(wide, title)(20, random)
    random.bit_generator.state = state
    optimum = wide._optimum(20, random)
    assert np.abs(optimum - 0.5).min() >= 0.1
    assert cost(optimum[None, :])[0] == pytest.approx(0.0, abs=1e-9)
    assert cost(np.full((1, 20), 0.5))[0] > 1e-3


def test_a_way_around_obstacles_is_cheaper_than_one_through_them():
    random = np.random.default_rng(1)
    state = random.bit_generator.state
    cost = wide.rover(20, random)
    random.bit_generator.state = state
    centre = random.uniform(0.2, 0.8, (wide.OBSTACLES, 2))[0]
    straight = np.linspace([0.1, 0.1], [0.9, 0.9], 10)
    parked = np.linspace(centre - 0.05, centre + 0.05, 10)
    parked[0], parked[-1] = straight[0], straight[-1]
    assert cost(straight.reshape(1, -1))[0] < cost(parked.reshape(1, -1))[0]


def test_the_centre_is_no_good_policy():
    cost = wide.policy(20, np.random.default_rng(2))
    some = cost(np.random.default_rng(0).random((500, 20)))
    assert 0.0 <= some.min() < cost(np.full((1, 20), 0.5))[0]


def test_the_command_makes_runs_and_tables(tmp_path, capsys):
    words = "--budget 20 --seeds 1 --noises tenth --dims 20 --functions sphere --players uniform"
    assert high_dim.main([*words.split(), "--out", str(tmp_path)]) == 0
    assert "Sphere 20" in (tmp_path / "report.md").read_text()
    assert high_dim.main([*words.split(), "--out", str(tmp_path)]) == 0
    assert "0 to be made" in capsys.readouterr().out


def test_a_folder_without_runs_is_told(tmp_path):
    with pytest.raises(SystemExit, match="holds no runs"):
        high_dim.main(["report", "--out", str(tmp_path)])
