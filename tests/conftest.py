import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: tests share the cores

from hypothesis import HealthCheck, settings

settings.register_profile(
    "partita",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("partita")
