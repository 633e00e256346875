"""A study against an optimizer in memory, through any sequence of asks, tells and openings."""

import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
from hypothesis import settings, strategies
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule
from support.studies import PLANE, change, is_sound

import partita as pt
from partita.study import Study, replica

VALUES = strategies.floats(-10, 10)
SETTINGS = {"policy": "soo", "seed": 3}  # a policy whose next ask depends on all it was told


class StudyMachine(RuleBasedStateMachine):
    """Two openings of one file, either of which may be used, closed or opened anew."""

    trials = Bundle("trials")

    def __init__(self):
        super().__init__()
        self._patch = mock.patch.multiple(
            replica, SNAPSHOT_AFTER=0.0, SNAPSHOT_BYTES=np.inf, SNAPSHOT_EVENTS=3
        )
        self._patch.start()
        self._folder = tempfile.TemporaryDirectory()
        self.path = Path(self._folder.name) / "tune.db"
        self.twin = pt.Optimizer(PLANE, **SETTINGS)
        self.studies = [Study.open(self.path, PLANE, **SETTINGS), Study.open(self.path)]

    def teardown(self):
        for study in self.studies:
            assert study.differing == 0
            study.close()
        assert is_sound(self.path)
        self._folder.cleanup()
        self._patch.stop()

    @rule(target=trials, which=strategies.integers(0, 1))
    def ask(self, which):
        trial, expected = self.studies[which].ask(), self.twin.ask()
        assert trial.number == expected.number
        np.testing.assert_array_equal(trial.params, expected.params)
        return trial.number

    @rule(trial=consumes(trials), value=VALUES, which=strategies.integers(0, 1))
    def tell(self, trial, value, which):
        self.studies[which].tell(trial, value)
        self.twin.tell(trial, value)

    @rule(trial=consumes(trials), which=strategies.integers(0, 1))
    def cancel(self, trial, which):
        self.studies[which].cancel(trial)
        self.twin.cancel(trial)

    @rule(
        point=strategies.tuples(*(strategies.floats(*pair) for pair in PLANE)),
        value=VALUES,
        which=strategies.integers(0, 1),
    )
    def add(self, point, value, which):
        assert self.studies[which].add(point, value) == self.twin.add(point, value)

    @rule(which=strategies.integers(0, 1), snapshot=strategies.booleans())
    def open_anew(self, which, snapshot):
        if not snapshot:
            change(self.path, "DELETE FROM snapshot")
        self.studies[which] = Study.open(self.path)

    @rule(which=strategies.integers(0, 1))
    def close(self, which):
        self.studies[which].close()

    @invariant()
    def all_know_the_same(self):
        expected = self.twin.trials
        for study in self.studies:
            found = study.trials
            np.testing.assert_array_equal(found.units, expected.units)
            np.testing.assert_array_equal(found.values, expected.values)
            np.testing.assert_array_equal(found.codes, expected.codes)


TestStudyMachine = StudyMachine.TestCase
TestStudyMachine.settings = settings(max_examples=25, stateful_step_count=25)
