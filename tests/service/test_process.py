"""The service as a process: events, an end by a signal, and kill -9 under way."""

import http.client
import json
import threading
import time
from pathlib import Path

import pytest
from support.service import Server

import partita as pt

SPACE = {"parameters": [["x", [0.0, 1.0]]]}


def request(server, method, path, body=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    try:
        text = None if body is None else json.dumps(body)
        connection.request(method, path, text, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"{}")
    finally:
        connection.close()


class Stream:
    """A reader of events."""

    def __init__(self, server, path, **headers):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        self.connection.request("GET", path, headers=headers)
        self.answer = self.connection.getresponse()

    def event(self):
        """The id and the data of the next event; None at the end."""
        number = None
        while True:
            line = self.answer.readline().decode()
            if not line:
                return None
            if line.startswith("id: "):
                number = line[4:].strip()
            if line.startswith("data: "):
                return number, json.loads(line[6:])

    def close(self):
        self.connection.close()


@pytest.fixture
def server(tmp_path):
    with Server(tmp_path) as server:
        status, _ = request(server, "POST", "/studies", {"name": "tune", "space": SPACE})
        assert status == 201
        yield server


def test_events_arrive_and_a_reader_that_was_away_catches_up(server, tmp_path):
    stream = Stream(server, "/studies/tune/events")
    assert stream.event()[1]["counts"]["told"] == 0
    study = pt.Study.open(tmp_path / "tune.db")  # another process than the service
    study.tell(study.ask(), 0.5)
    number, shown = stream.event()
    while not shown["counts"]["told"]:
        number, shown = stream.event()
    assert shown["answer"]["params"]["x"] == pytest.approx(study.trials[0].params["x"])
    stream.close()
    study.tell(study.ask(), 0.25)
    again = Stream(server, "/studies/tune/events", **{"Last-Event-ID": number})
    newer, shown = again.event()
    assert newer != number
    assert shown["counts"]["told"] == 2
    again.close()
    listed = Stream(server, "/events")
    assert listed.event()[1]["studies"][0]["told"] == 2
    listed.close()


def test_slow_and_vanished_readers_hold_no_memory(server, tmp_path):
    """Fifty readers that never read, and fifty that have gone, while values arrive."""
    import socket

    readers = []
    for i in range(100):
        reader = socket.create_connection(("127.0.0.1", server.port), timeout=20)
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.sendall(b"GET /studies/tune/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        if i % 2:
            reader.close()
        else:
            readers.append(reader)
    study = pt.connect(f"{server.url}/tune")

    def memory():
        lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1000

    def work(n):
        for _ in range(n):
            trial = study.ask()
            study.tell(trial, trial.params["x"])
            time.sleep(0.02)

    work(60)
    before = memory()
    work(150)
    assert memory() < before + 60  # MB; the events of each reader would be some more each second
    for reader in readers:
        reader.close()
    stream = Stream(server, "/studies/tune/events")  # others are still served
    while stream.event()[1]["counts"]["told"] < 210:
        pass
    stream.close()


def test_sigterm_finishes_what_was_accepted_and_ends_streams(server):
    stream = Stream(server, "/studies/tune/events")
    stream.event()
    answers = []

    def ask():
        answers.append(request(server, "POST", "/studies/tune/ask", {"count": 200}))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.3)  # they are under way, or done
    code, seconds = server.stop()
    for thread in threads:
        thread.join()
    assert code == 0
    assert seconds < 20
    assert [status for status, _ in answers] == [200] * 4
    assert stream.event() is None


def test_kill_9_loses_nothing_that_was_answered(server, tmp_path):
    """Clients that send again go on by themselves; what was answered is in the file, once."""
    told, failures = {}, []
    stop = threading.Event()

    def work(worker):
        study = pt.connect(f"{server.url}/tune", patience=60)
        try:
            for i in range(10_000):
                if stop.is_set():
                    return
                trial = study.ask()
                value = (trial.params["x"] - 0.3) ** 2 + worker + i * 1e-6
                study.tell(trial, value)
                told[trial.number] = value
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for kill in range(4):
        end = time.monotonic() + 60  # a busy machine is slow
        while len(told) < 15 * (kill + 1) and time.monotonic() < end and not failures:
            time.sleep(0.05)
        if kill < 3:
            server.restart()
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures
    server.stop()
    trials = pt.Study.open(tmp_path / "tune.db").trials
    assert len(told) > 50
    stored = {
        n: v
        for n, v, s in zip(trials.numbers, trials.values, trials.states, strict=True)
        if s == "finished"
    }
    assert stored == told
    # An ask whose answer was lost is not asked twice: nothing stays pending.
    assert len(trials) == len(told)


def test_beyond_this_machine_a_token_is_drawn_and_printed(tmp_path):
    with Server(tmp_path, "--host", "0.0.0.0") as server:
        token = server.line.partition("#token=")[2].strip()
        assert len(token) >= 32
        assert request(server, "GET", "/studies")[0] == 401
        right = {"Authorization": f"Bearer {token}"}
        assert request(server, "GET", "/studies", **right)[0] == 200


def test_a_token_from_the_environment(tmp_path):
    with Server(tmp_path, PARTITA_TOKEN="a-long-enough-token") as server:
        assert request(server, "GET", "/studies")[0] == 401
        right = {"Authorization": "Bearer a-long-enough-token"}
        assert request(server, "GET", "/studies", **right)[0] == 200


def test_bad_options_are_refused(tmp_path, capsys, monkeypatch):
    from partita.commands.main import main

    assert main(["serve", str(tmp_path), "--port", "99999"]) == 2
    assert main(["serve", str(tmp_path / "none.db")]) == 2
    monkeypatch.setenv("PARTITA_TOKEN", "short")
    assert main(["serve", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert "--port 99999" in error
    assert "no such file" in error
    assert "PARTITA_TOKEN" in error
