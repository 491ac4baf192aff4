"""A real browser for the report's tests: Chromium without a window, one for the whole session."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contest.report.samples import SAMPLES

from certifit.contest.report import write_report

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-device-scale-factor=1",
)


def _absent(reason: str) -> Any:
    """Skip on a machine without a browser, but never where the tests are the gate."""
    if os.environ.get("CERTIFIT_REQUIRE_BROWSER"):
        pytest.fail(f"{reason}, and CERTIFIT_REQUIRE_BROWSER asks for the browser tests")
    pytest.skip(f"{reason}: install the Debian packages chromium and chromium-driver, and selenium")


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Chromium with its console and its network traffic recorded."""
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        _absent("selenium is not installed")
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    control = shutil.which("chromedriver")
    if not program or not control:
        _absent("chromium or chromedriver was not found")
    options = webdriver.ChromeOptions()
    options.binary_location = str(program)
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(str(control)))
    browser.set_script_timeout(20)
    yield browser
    browser.quit()


@pytest.fixture(scope="session")
def runs() -> Callable[[str], dict[str, Any]]:
    """The sample runs, each built once."""
    built: dict[str, dict[str, Any]] = {}

    def get(name: str) -> dict[str, Any]:
        if name not in built:
            built[name] = SAMPLES[name]()
        return built[name]

    return get


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory, runs: Callable[[str], dict[str, Any]]) -> Callable[[str], Path]:
    """The samples' reports as files."""
    folder, written = tmp_path_factory.mktemp("reports"), {}

    def get(name: str) -> Path:
        if name not in written:
            written[name] = write_report(runs(name), folder / f"{name}.html")
        return written[name]

    return get


class Page:
    """A report that is open in the browser, with the few questions the tests ask of it."""

    def __init__(self, driver: Any, path: Path) -> None:
        self.driver, self.path = driver, path

    def open(self, part: str = "", width: int = 1280, height: int = 900, dark: bool = False) -> Page:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}  # colours are looked at when they have arrived
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme, still]})
        self.driver.get("about:blank")  # the same address with another hash would not load again
        for kind in ("browser", "performance"):
            self.driver.get_log(kind)
        self.driver.get(self.path.as_uri() + (f"#{part}" if part else ""))
        self.settle()
        return self

    def settle(self) -> None:
        """Wait until observers have run and two frames are painted."""
        frames = (
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0)));"
        )
        self.driver.execute_async_script(frames)

    def js(self, code: str, *arguments: Any) -> Any:
        return self.driver.execute_script(code, *arguments)

    def find(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def all(self, selector: str) -> list[Any]:
        return self.driver.find_elements("css selector", selector)

    def visit(self, tab: Any) -> None:
        tab.click()
        self.settle()

    def value(self, name: str) -> float:
        """A number of the decision page at full precision."""
        return float(self.find(f"#decide-{name}").get_attribute("data-value"))

    def shown(self) -> list[str]:
        """The parts of the report that are open."""
        return self.js("return [...document.querySelectorAll('.panel')].filter((p) => !p.hidden).map((p) => p.id)")

    def problems(self) -> list[str]:
        """What the browser's console says."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def shows_all_and_asks_nobody(self) -> None:
        """With every fold open there is no error, no request and no figure without its drawing."""
        for node in self.all("details"):
            self.js("arguments[0].open = true", node)
        self.settle()
        assert self.problems() == []
        assert self.requests() == []
        figures = "[...document.querySelectorAll('[data-figure] .plot')]"
        assert self.js(f"return {figures}.filter((p) => !p.querySelector('svg')).length") == 0

    def requests(self) -> list[str]:
        """The addresses the page asked for, other than itself and what is written inside it."""
        asked = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                asked.append(message["params"]["request"]["url"])
        return [
            url for url in asked if not url.startswith(("data:", "about:")) and url.split("#")[0] != self.path.as_uri()
        ]


@pytest.fixture
def page(driver: Any, pages: Callable[[str], Path]) -> Callable[[str], Page]:
    """A sample's report in the browser."""
    return lambda name: Page(driver, pages(name))
