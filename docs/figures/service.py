"""Screenshots of the page of `partita serve`, with Chromium: python docs/figures/service.py"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from support.browser import MISSING, Browser
from support.service import Server

import partita as pt

ROOT = Path(__file__).parents[2]
SPACE = {"lr": (1e-4, 1e-1, "log"), "depth": (1, 12, "int"), "dropout": (0.0, 0.5)}
READY = (
    "return document.querySelectorAll('.slices .u-over').length >= arguments[0] "
    "&& document.querySelectorAll('.bar').length >= arguments[0]"
)


def train(study, n):
    rng = np.random.default_rng(0)
    for _ in range(n):
        trial = study.ask()
        lr, depth, dropout = trial.params.values()
        miss = np.log10(lr / 0.003) ** 2 + 0.02 * (depth - 6) ** 2 + (dropout - 0.2) ** 2
        study.tell(trial, float(miss + rng.normal(0, 0.1)))


def main(folder=ROOT / "docs" / "figures", n=400):
    with tempfile.TemporaryDirectory() as studies, Server(studies) as server:
        tune = pt.connect(f"{server.url}/tune", space=SPACE, n_evals=500)
        known = {"norm_bound": 2.0, "noise": pt.Gaussian(0.1), "kernel": pt.Matern(1.5, 0.3)}
        proven = pt.connect(f"{server.url}/oven", space=[(0, 1), (0, 1)], n_evals=5000, **known)
        for _ in range(n):
            trial = proven.ask()
            proven.tell(trial, float(((trial.params - [0.3, 0.7]) ** 2).sum()))
        pt.connect(f"{server.url}/new-idea", space=[(0, 1)])
        with Browser(1280, 1560) as browser:
            browser.open(f"{server.url}/#/tune")
            for _ in range(4):
                train(tune, n // 4)
                time.sleep(1)
            tune.ask(2)
            browser.until(READY, 3, patience=120)
            shown = "return document.querySelectorAll('.big')[2].textContent === arguments[0]"
            browser.until(shown, str(n), patience=120)
            browser.until("return document.querySelectorAll('button.risky').length === 2")
            time.sleep(2)
            browser.picture(folder / "service-study.png")
            browser.show(390, 844, dark=True)
            browser.open("about:blank")
            browser.open(f"{server.url}/#/oven")
            browser.until(READY, 2, patience=120)
            time.sleep(1.5)
            browser.run("document.querySelector('canvas.map').closest('section').scrollIntoView()")
            time.sleep(0.5)
            browser.picture(folder / "service-phone.png")
            browser.show(1280, 420)
            browser.open(f"{server.url}/#/")
            browser.until("return document.querySelectorAll('tr.link').length === 3", patience=120)
            browser.picture(folder / "service-list.png")


if __name__ == "__main__":
    try:
        main()
    except TypeError as error:
        sys.exit(f"{MISSING} ({error})")
