"""A surgery's appointments: thousands of simulated days as Ray tasks, behind Partita's own loop.

Patients are called every `interval` minutes, `together` of them at the start, and take 10 minutes
or so each, if they come. Waiting, an idle doctor and overtime all cost. A day is one noisy
evaluation and takes a millisecond, so twenty of them make a task. Ray runs here, or on the cluster
whose address you give.
"""

import argparse

import numpy as np
import ray

import partita as pt
from partita.integrations.ray import RayExecutor

PATIENTS, CLOSING = 24, 240.0


def cost_of_a_day(interval, together):
    rng = np.random.default_rng()
    called = np.maximum(np.arange(PATIENTS) - (together - 1), 0) * interval
    arrive = called + rng.normal(0.0, 3.0, PATIENTS)
    takes = rng.lognormal(np.log(9.0), 0.45, PATIENTS)
    free = waited = idle = 0.0
    for patient in np.flatnonzero(rng.random(PATIENTS) < 0.85):  # the others do not come
        begins = max(free, arrive[patient])
        waited += begins - arrive[patient]
        idle += begins - free
        free = begins + takes[patient]
    return waited + 10.0 * idle + 6.0 * max(free - CLOSING, 0.0)


def mean_cost(interval, together, days=4000):
    return np.mean([cost_of_a_day(interval, together) for _ in range(days)])


def main(evals, address):
    ray.init(address=address, include_dashboard=False, log_to_driver=False, logging_level="error")
    result = pt.minimize(
        cost_of_a_day,
        {"interval": (4.0, 16.0), "together": (1, 6, "int")},
        n_evals=evals,
        executor=RayExecutor(),
        batch=20,
    )
    print(result)
    print(f"\na patient every 10 minutes costs {mean_cost(10.0, 1):.0f} a day")
    print(f"tuned: costs {mean_cost(**result.params):.0f} a day")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evals", type=int, default=4000, help="days to simulate (4000)")
    parser.add_argument("--address", help="address of a Ray cluster, such as host:6379")
    main(**vars(parser.parse_args()))
