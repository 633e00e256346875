"""Importing Partita is quick because nothing heavy is loaded before it is needed."""

import os
import subprocess
import sys

import pytest

import partita


def loaded_after(code):
    script = f"import sys; {code}; print(*sorted(m for m in sys.modules if '.' not in m))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_import_loads_nothing_heavy():
    assert not {"numpy", "scipy", "numba"} & loaded_after("import partita")
    light = "import partita; partita.Grid(30, dim=2); partita.Matern(); partita.Uniform(-1, 1)"
    assert not {"scipy", "numba"} & loaded_after(light)


def test_every_public_name_loads_and_is_listed():
    assert dir(partita) == sorted(partita.__all__)
    for name in partita.__all__:
        assert getattr(partita, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        partita.nonsense  # noqa: B018


def test_one_thread_limits_the_blas_of_scipy_which_is_loaded_late():
    """NumPy and SciPy may each bring a BLAS; the limit must hold for both."""
    code = (
        "from partita._threads import one_thread\n"
        "with one_thread():\n"
        "    import scipy.linalg, threadpoolctl\n"
        "    print({i['num_threads'] for i in threadpoolctl.threadpool_info()"
        " if i['user_api'] == 'blas'})"
    )
    many = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    many |= {"OPENBLAS_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=many
    )
    assert done.stdout == "{1}\n"
