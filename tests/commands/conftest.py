"""What the tests of commands share."""

import pytest

from partita.commands import main as cli


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tune.db"


@pytest.fixture
def run(capsys):
    """Exit code, stdout and stderr of a command."""

    def run(*arguments):
        code = cli.main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
