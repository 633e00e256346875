"""A real `partita serve`, in a process of its own, that can be killed and started again.

And what tests of the service evaluate.
"""

import os
import re
import signal
import subprocess
import sys
import time

SPACE = {"parameters": [["x", [0.0, 1.0]], ["n", [1, 9, "int"]], ["kind", {"choices": ["a", "b"]}]]}


class Server:
    """A service over a folder; `start` after `kill` takes the same port again."""

    def __init__(self, folder, *options, **environment):
        self.folder, self.options, self.environment = folder, options, environment
        self.port, self.process, self.line = 0, None, ""
        self.start()

    def start(self):
        command = [sys.executable, "-m", "partita", "serve", str(self.folder)]
        command += ["--port", str(self.port), *self.options]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", **self.environment},
        )
        self.line = self.process.stdout.readline()
        found = re.search(r"serving on http://\S+?:(\d+)", self.line)
        assert found, self.line + self.process.stdout.read()
        self.port = int(found[1])

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def restart(self):
        """Kill it at once, and start it again."""
        self.kill()
        self.start()

    def stop(self, patience=30):
        """End it politely; its exit code and the seconds that took."""
        start = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(patience)
        self.process.stdout.close()
        return code, time.monotonic() - start

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.kill()


def evaluate(client, n, name="tune"):
    """Ask and tell n times."""
    for _ in range(n):
        (trial,) = client.post(f"/studies/{name}/ask", json={}).json()["trials"]
        value = (trial["params"]["x"] - 0.3) ** 2 + trial["params"]["n"] / 20
        answer = client.post(
            f"/studies/{name}/tell", json={"number": trial["number"], "value": value}
        )
        assert answer.status_code == 200
