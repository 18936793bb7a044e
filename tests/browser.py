"""Just enough of the WebDriver protocol to open a page in headless Chromium, where there is one."""

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.request
from contextlib import contextmanager

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


def is_installed():
    return shutil.which("chromedriver") is not None and shutil.which("chromium") is not None


class Browser:
    def __init__(self, address):
        self.address = address

    def ask(self, method, path, **body):
        data = json.dumps(body).encode() if method == "POST" else None
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)["value"]

    def open(self, path, width, height=900, is_dark=False):
        self.ask("POST", "/window/rect", width=width, height=height)
        scheme = {"features": [{"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}]}
        self.devtools("Emulation.setEmulatedMedia", **scheme)
        self.devtools(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )
        self.ask("POST", "/url", url=path.resolve().as_uri())

    def devtools(self, command, **parameters):
        return self.ask("POST", "/goog/cdp/execute", cmd=command, params=parameters)

    def run(self, script):
        return self.ask("POST", "/execute/sync", script=script, args=[])

    def errors(self):
        return [entry["message"] for entry in self.ask("POST", "/se/log", type="browser")]

    def save_screenshot(self, path):
        size = self.devtools("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        image = self.devtools("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(image["data"]))


@contextmanager
def browser(profile):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    driver = subprocess.Popen([shutil.which("chromedriver"), f"--port={port}"], stdout=subprocess.DEVNULL)
    try:
        server = Browser(f"http://127.0.0.1:{port}")
        options = {"args": [*FLAGS, f"--user-data-dir={profile}"], "binary": shutil.which("chromium")}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        for _ in range(100):
            try:
                session = server.ask("POST", "/session", capabilities={"alwaysMatch": wanted})
                break
            except urllib.error.URLError:
                time.sleep(0.1)
        opened = Browser(f"{server.address}/session/{session['sessionId']}")
        yield opened
        opened.ask("DELETE", "")
    finally:
        driver.terminate()
        driver.wait(10)
