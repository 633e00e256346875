"""A real Chromium, driven through its WebDriver by the standard library alone."""

import base64
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
MISSING = "needs Chromium and its driver: apt-get install chromium chromium-driver"


class Browser:
    def __init__(self, width=1280, height=1600, dark=False):
        self.driver = subprocess.Popen(
            [DRIVER, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        line = ""
        while "on port" not in line or "successfully" not in line:
            line = self.driver.stdout.readline()
            assert line, "chromedriver has ended"
        self.base = f"http://127.0.0.1:{int(line.rpartition('port ')[2].strip().rstrip('.'))}"
        arguments = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        arguments += [f"--window-size={width},{height}", "--hide-scrollbars"]
        options = {"binary": CHROMIUM, "args": arguments}
        logs = {"browser": "ALL"}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": logs}
        made = self.send("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.session = f"/session/{made['sessionId']}"
        self.show(width, height, dark)

    def send(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()) from None

    def show(self, width, height, dark=False):
        """Take on a size and a colour scheme."""
        mobile = width < 600
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
        self.command("Emulation.setDeviceMetricsOverride", size)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.command("Emulation.setEmulatedMedia", {"features": scheme})

    def command(self, name, params):
        return self.send(
            "POST", f"{self.session}/goog/cdp/execute", {"cmd": name, "params": params}
        )

    def open(self, url):
        self.send("POST", f"{self.session}/url", {"url": url})

    def run(self, script, *args):
        """What a script returns in the page."""
        return self.send(
            "POST", f"{self.session}/execute/sync", {"script": script, "args": list(args)}
        )

    def until(self, script, *args, patience=20):
        """Wait until a script returns something true, and return it."""
        end = time.monotonic() + patience
        while True:
            found = self.run(script, *args)
            if found:
                return found
            text = "return document.body.innerText"
            assert time.monotonic() < end, f"{script}\n{self.run(text)}\n{self.log()}"
            time.sleep(0.1)

    def click(self, text):
        """Click the first button or link with this text."""
        self.until(
            "const found = [...document.querySelectorAll('button, a')]"
            ".find((e) => e.textContent.trim() === arguments[0] && e.offsetParent);"
            "if (found) found.click(); return Boolean(found)",
            text,
        )

    def fill(self, selector, value):
        self.until(
            "const field = document.querySelector(arguments[0]); if (!field) return false;"
            "field.value = arguments[1]; field.dispatchEvent(new Event('input')); return true",
            selector,
            value,
        )

    def log(self):
        """Serious entries of the console."""
        entries = self.send("POST", f"{self.session}/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] == "SEVERE"]

    def picture(self, path, whole=False):
        """Save a screenshot."""
        got = self.command("Page.captureScreenshot", {"captureBeyondViewport": whole})
        path.write_bytes(base64.b64decode(got["data"]))

    def close(self):
        try:
            self.send("DELETE", self.session)
        finally:
            self.driver.terminate()
            self.driver.wait()
            self.driver.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()
