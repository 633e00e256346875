"""The column `data` of a study's log: what else is known of a trial, as JSON."""

import pytest
from support.studies import PLANE, change, play, rechained

from partita.errors import StudyError
from partita.study import Study
from partita.study.events import Broken, Event, as_data, data_of

BAD = ["", "[]", "1", "null", "{", '{"a": NaN}', "[" * 100_000, '{"a": 1}{']


def test_what_is_there_comes_back_and_nothing_is_stored_for_nothing():
    text = as_data({"values": {"cost": 1.5, "é": -2.0}, "count": None})
    assert data_of(Event(1, "tell", 0, 0.0, data=text), ["values"]) == {
        "values": {"cost": 1.5, "é": -2.0}
    }
    assert as_data({"count": None}) is None
    assert data_of(Event(1, "tell", 0, 0.0)) == {}


@pytest.mark.parametrize("text", BAD, ids=lambda text: text[:9])
def test_what_is_not_an_object_is_refused(text):
    with pytest.raises(Broken, match="event 7: its data is not a JSON object"):
        data_of(Event(7, "tell", 0, 0.0, data=text), ["a"])


@pytest.fixture
def path(tmp_path):
    """A study with five values and no snapshot."""
    with Study.open(tmp_path / "tune.db", PLANE) as study:
        play(study, 5)
    change(tmp_path / "tune.db", "DELETE FROM snapshot")
    return tmp_path / "tune.db"


def test_a_field_of_a_later_version_is_refused(path):
    rechained(path, "UPDATE events SET data = '{\"moon\": 1}' WHERE seq = 4")
    with pytest.raises(StudyError, match=r"event 4 .*does not know: 'moon'"):
        assert Study.open(path).n_told


def test_an_edit_is_noticed(path):
    change(path, "UPDATE events SET data = '{}' WHERE seq = 4")
    with pytest.raises(StudyError, match="event 4"):
        assert Study.open(path).n_told
