"""Choose a kind of scikit-learn model and its settings at once, under a limit on its size.

A support vector machine and a forest have different settings: branches of the space. Each score
is of one random split, so it is noisy, and the model must fit into 60 kB, which only a fit shows.
"""

import argparse
import pickle

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import ShuffleSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import partita as pt

X, Y = load_breast_cancer(return_X_y=True)
SPACE = {
    "model": {
        "svm": {"C": (1e-2, 1e3, "log"), "gamma": (1e-5, 1.0, "log")},
        "forest": {"n_estimators": (5, 300, "int", "log"), "max_depth": (1, 12, "int")},
    }
}


def build(model, **own):  # own: C and gamma, or n_estimators and max_depth
    if model == "svm":
        return make_pipeline(StandardScaler(), SVC(**own))
    return RandomForestClassifier(**own, random_state=0)


def main(evals):
    rng = np.random.default_rng(0)

    def fit(**params):
        rows = rng.permutation(len(X))
        chosen = build(**params).fit(X[rows[:300]], Y[rows[:300]])
        error = 1 - chosen.score(X[rows[300:]], Y[rows[300:]])
        return {"error": error, "kilobytes": len(pickle.dumps(chosen)) / 1000}

    result = pt.minimize(fit, SPACE, n_evals=evals, constraints=["kilobytes <= 60"])
    print(result)

    print("\nMean of 20 other splits:")
    splits = ShuffleSplit(20, train_size=300, random_state=1)
    for name, params in (("a plain forest", {"model": "forest"}), ("chosen", result.params)):
        score = cross_val_score(build(**params), X, Y, cv=splits).mean()
        size = len(pickle.dumps(build(**params).fit(X[:300], Y[:300]))) / 1000
        print(f"  {name:<16} error {1 - score:.4f}, {size:.0f} kB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evals", type=int, default=120, help="fits (120)")
    main(parser.parse_args().evals)
