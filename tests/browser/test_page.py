"""The page in a real browser: a study is made, values arrive, and nothing a study says is HTML."""

# ruff: noqa: E501
import json
import threading

import numpy as np
import pytest

pytest.importorskip("uvicorn")

from support.browser import CHROMIUM, DRIVER, MISSING, Browser
from support.service import Server

import partita as pt

pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason=MISSING)

EVIL = "<img src=x onerror=\"document.title='taken'\">"
SPACE = {"lr": (1e-4, 1e-1, "log"), "depth": (1, 12, "int"), "kind": ["a", EVIL]}

#: Faults that a check of accessibility would call serious: fields without a label, buttons without
#: a name, pictures without a text, headings and landmarks that are missing, text too faint.
CHECK = """
const faults = [];
const name = (e) => (e.getAttribute('aria-label') || e.textContent || e.title || '').trim();
for (const e of document.querySelectorAll('input, select, textarea'))
  if (!e.getAttribute('aria-label') && !e.closest('label')) faults.push('no label: ' + e.outerHTML);
for (const e of document.querySelectorAll('button, a')) if (!name(e)) faults.push('no name: ' + e.outerHTML);
for (const e of document.querySelectorAll('img, [role=img]'))
  if (!e.getAttribute('alt') && !e.getAttribute('aria-label')) faults.push('no text: ' + e.outerHTML);
if (!document.documentElement.lang || !document.querySelector('main')) faults.push('no language or main');
const light = (c) => { const [r, g, b] = c.match(/[\\d.]+/g).map(Number).map((v) => { v /= 255;
  return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const back = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
  if (!/, 0\\)$|transparent/.test(c)) return c; } return 'rgb(255, 255, 255)'; };
for (const e of document.querySelectorAll('p, h1, h2, td, th, button, .name, .big, .more, .state, label')) {
  if (!e.textContent.trim() || !e.offsetParent || e.disabled) continue;
  const [a, b] = [light(getComputedStyle(e).color), light(back(e))].sort((x, y) => y - x);
  if ((a + 0.05) / (b + 0.05) < 4.5) faults.push(`contrast ${((a + 0.05) / (b + 0.05)).toFixed(2)}: ` + e.outerHTML.slice(0, 120));
}
if (document.documentElement.scrollWidth > innerWidth + 1) faults.push('wider than the window');
return faults;
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("studies")) as server:
        yield server


@pytest.fixture(scope="module")
def browser():
    with Browser() as browser:
        yield browser


def evaluate(study, n, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        trial = study.ask()
        lr, depth = trial.params["lr"], trial.params["depth"]
        miss = (
            np.log10(lr / 0.003) ** 2
            + 0.02 * (depth - 6) ** 2
            + 0.2 * (trial.params["kind"] == "a")
        )
        study.tell(trial, float(miss + rng.normal(0, 0.1)))


def text(browser):
    return browser.run("return document.body.innerText")


def test_a_study_is_made_and_told_by_hand(server, browser):
    browser.open(server.url)
    browser.click("New study")
    browser.fill("[name=name]", "by-hand")
    browser.fill("[name=space]", json.dumps({"bounds": [[0, 1], [0, 1]]}))
    browser.click("Create")
    browser.click("Ask for a trial")
    browser.click("Ask")
    browser.fill("[name=value]", "0.75")
    browser.click("Tell")
    browser.until("return document.body.innerText.includes('0.75')")
    study = pt.connect(f"{server.url}/by-hand")
    assert study.trials.values.tolist() == [0.75]
    study.ask()
    browser.click("Cancel")
    assert study.n_pending == 1  # it asks first
    browser.click("Cancel the trial")
    browser.until("return document.body.innerText.includes('1 failed')")
    assert browser.log() == []


def test_values_arrive_and_nothing_is_taken_for_html(server, browser):
    study = pt.connect(f"{server.url}/watched", space=SPACE)
    browser.open(f"{server.url}/#/watched")
    browser.until("return document.body.innerText.includes('no values yet')")
    worker = threading.Thread(target=evaluate, args=(study, 60))
    worker.start()
    browser.until("return Number(document.querySelectorAll('.big')[3].textContent) >= 60")
    worker.join()
    browser.until("return document.querySelectorAll('.slices figure').length === 3")
    browser.until("return document.querySelectorAll('.bar').length === 3")
    assert EVIL in text(browser)
    assert browser.run("return document.title") == "watched – Partita"
    assert browser.run("return document.querySelectorAll('main img').length") == 0
    before = browser.until(
        "const m = document.querySelector('.slices').previousElementSibling; return m.textContent"
    )
    browser.run(
        "const c = document.querySelector('canvas.map'), f = c.getBoundingClientRect();"
        "c.dispatchEvent(new MouseEvent('click', {clientX: f.left + 100, clientY: f.top + 30}))"
    )
    browser.until(
        "return document.querySelector('.slices').previousElementSibling.textContent !== arguments[0]",
        before,
    )
    browser.click("Back to the answer")
    browser.click("Value")
    browser.until(
        "return document.querySelector('[aria-sort=ascending]')?.textContent.startsWith('Value')"
    )
    assert browser.log() == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_can_be_read_by_everybody(server, browser, dark, width):
    browser.show(width, 900, dark)
    for address, there in (("", "tr.link, p.note"), ("#/by-hand", ".figure")):
        browser.open("about:blank")
        browser.open(f"{server.url}/{address}")
        browser.until("return document.querySelector(arguments[0])", there)
        assert browser.run(CHECK) == []
    browser.show(1280, 1600)


def test_a_restart_is_bridged(server, browser):
    browser.open(f"{server.url}/#/by-hand")
    browser.until("return document.getElementById('line').textContent === 'live'")
    server.restart()
    browser.until("return document.getElementById('line').textContent === 'live'")
    study = pt.connect(f"{server.url}/by-hand")
    study.add([0.5, 0.5], 0.125)
    browser.until("return document.body.innerText.includes('0.125')")


def test_a_token_is_asked_for_or_taken_from_the_address(tmp_path):
    with Server(tmp_path, PARTITA_TOKEN="token-for-the-test") as server, Browser() as browser:
        browser.open(server.url)
        browser.until("return document.body.innerText.includes('needs a token')")
        browser.open("about:blank")
        browser.open(f"{server.url}/#token=token-for-the-test")
        browser.until("return document.getElementById('line').textContent === 'live'")
        assert "token" not in browser.run("return location.href")
