"""Opens pages in headless Chromium by Selenium, where Chromium and its driver are installed."""

import base64
import shutil
from contextlib import contextmanager

from selenium import webdriver

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


def is_installed():
    return shutil.which("chromedriver") is not None and shutil.which("chromium") is not None


@contextmanager
def open_browser():
    """Both programs are named, so that Selenium does not look for others or download any."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in FLAGS:
        options.add_argument(flag)
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


def open_page(driver, path, width, height=900, is_dark=False):
    scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    driver.get(path.resolve().as_uri())


def save_screenshot(driver, path):
    """The whole page, not only what the window shows."""
    size = driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
    clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
    image = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    path.write_bytes(base64.b64decode(image["data"]))
