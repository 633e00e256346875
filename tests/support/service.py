"""A real `partita serve`, in a process of its own, that can be killed and started again."""

import os
import re
import signal
import subprocess
import sys
import time


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
