"""Looks at the page of --live in headless Chromium while a run is under way. See tools/check-page."""

import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

from playwright.sync_api import expect, sync_playwright
from prometheus_client.parser import text_string_to_metric_families

CHROMIUM = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]
# What takes some seconds on a slow machine, and ends by itself.
SHORT = ["--workload", "hotspot:size=256,iterations=6"]
# What takes longer than anybody looks.
LONG = ["--workload", "gemm:size=2048"]
LIMIT = 60_000


class Run:
    """A run with --live, and the address of its page."""

    def __init__(self, program, workload):
        command = [program, "--topology", "v100_node", *workload, "--live", "--format", "json"]
        self.output = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdout=self.output, stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        found = re.match(r"live: (http://127\.0\.0\.1:(\d+)/\?token=([0-9a-f]{32}))  \(.* watch (\d+)\)$", line)
        assert found, line
        self.address, self.port, self.token, pid = found.groups()
        assert int(pid) == self.process.pid

    def get(self, path):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}")
        request.add_header("Authorization", f"Bearer {self.token}")
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.read().decode()

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stderr.close()


def simulated(page):
    """The simulated time that the page shows, in nanoseconds."""
    text = page.locator("#tiles dd").first.inner_text()
    number, unit = text.split()
    return float(number) * {"ns": 1, "us": 1e3, "ms": 1e6}[unit]


def wait_until(what, condition):
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < LIMIT / 1000, what
        time.sleep(0.05)


def check_fits(page):
    """Nothing makes the page scroll sideways."""
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0, f"the page is {wide} pixels wider than the window"


def look(page, folder, name):
    """Screenshots at desktop and phone width, light and dark."""
    page.evaluate("window.scrollTo(0, 0)")
    for width, height, device in [(1280, 900, "desktop"), (390, 844, "phone")]:
        page.set_viewport_size({"width": width, "height": height})
        for scheme in ["light", "dark"]:
            page.emulate_media(color_scheme=scheme)
            page.wait_for_timeout(300)
            check_fits(page)
            page.evaluate("document.querySelector('#picture').scrollLeft = 10000")
            page.screenshot(path=folder / f"{name}-{device}-{scheme}.png", full_page=True)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(color_scheme="light")


def opened(context, run):
    """A page of the run, and what goes wrong in it."""
    page = context.new_page()
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    foreign = []
    page.on("request", lambda request: foreign.append(request.url) if not request.url.startswith(f"http://127.0.0.1:{run.port}/") else None)
    answer = page.goto(run.address)
    assert answer.status == 200
    return page, problems, foreign


def a_run_moves_and_is_held(context, program, folder):
    run = Run(program, LONG)
    try:
        page, problems, foreign = opened(context, run)
        expect(page.locator("#title")).to_have_text("gemm on v100_node", timeout=LIMIT)
        expect(page.locator("#phase")).to_have_text("running", timeout=LIMIT)
        assert "token" not in page.url, page.url
        expect(page.locator("#kernels tr.resident")).to_have_count(1, timeout=LIMIT)
        expect(page.locator("#picture rect.loaded.sm")).to_have_count(84, timeout=LIMIT)
        before = simulated(page)
        wait_until("simulated time moves", lambda: simulated(page) > before)
        wait_until("SMs are shown busy", lambda: page.evaluate(
            "[...document.querySelectorAll('#picture rect.sm')].some((sm) => parseFloat(sm.style.getPropertyValue('--load')) > 1)"))

        page.locator("#pause").click()
        expect(page.locator("#phase")).to_have_text("paused", timeout=LIMIT)
        page.wait_for_timeout(500)
        held = simulated(page)
        page.wait_for_timeout(700)
        assert simulated(page) == held, "a run that is held stands still"
        page.locator("#ask").click()
        expect(page.locator("#waiting-when")).to_have_text(re.compile(r"^At .*:$"), timeout=LIMIT)
        assert page.locator("#waiting li").count() > 0, "units of a run that is held have work outstanding"
        look(page, folder, "held")

        page.locator("#step-time").select_option("1us")
        page.locator("#step").click()
        wait_until("a step moves simulated time", lambda: simulated(page) > held)
        expect(page.locator("#phase")).to_have_text("paused", timeout=LIMIT)
        page.wait_for_timeout(500)
        moved = simulated(page) - held
        assert 900 < moved <= 1010, f"a step of 1 us moves it by {moved} ns"

        page.locator("#resume").click()
        expect(page.locator("#phase")).to_have_text("running", timeout=LIMIT)
        wait_until("it goes on", lambda: simulated(page) > held + 1010)
        families = list(text_string_to_metric_families(run.get("/metrics")))
        assert {"balar_simulated_seconds", "balar_gpu_sm_ipc"} <= {family.name for family in families}
        assert all(family.documentation and family.samples for family in families)
        look(page, folder, "running")

        # Ctrl-C ends it, with the statistics so far, and the page says so.
        run.process.send_signal(signal.SIGINT)
        expect(page.locator("#phase")).to_have_text("ended", timeout=LIMIT)
        expect(page.locator("#notice")).to_have_text(re.compile("The run is over: interrupted"))
        assert run.process.wait(timeout=60) == 130
        assert not problems and not foreign, (problems, foreign)
    finally:
        run.end()


def a_run_ends_cleanly(context, program, folder):
    run = Run(program, SHORT)
    try:
        page, problems, foreign = opened(context, run)
        expect(page.locator("#phase")).to_have_text("ended", timeout=LIMIT)
        assert run.process.wait(timeout=60) == 0
        expect(page.locator("#notice")).to_have_text(re.compile("The run is over: completed, and the result is verified, at "))
        page.wait_for_timeout(1500)
        expect(page.locator("#phase")).to_have_text("ended")
        assert page.locator("#kernels tr").count() > 0, "what the run did stays readable"
        assert page.locator("#pause").is_disabled()
        assert not problems and not foreign, (problems, foreign)
        look(page, folder, "ended")
    finally:
        run.end()


def a_run_is_killed(context, program, folder):
    run = Run(program, LONG)
    try:
        page, _, _ = opened(context, run)
        expect(page.locator("#phase")).to_have_text("running", timeout=LIMIT)
        run.process.kill()
        expect(page.locator("#notice")).to_have_text(re.compile("gone without a word"), timeout=LIMIT)
    finally:
        run.end()


def main():
    program, chromium, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as profile, sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=chromium, headless=True, args=CHROMIUM, chromium_sandbox=False)
        for check in [a_run_moves_and_is_held, a_run_ends_cleanly, a_run_is_killed]:
            begun = time.monotonic()
            check(context, program, folder)
            print(f"{check.__name__}: ok ({time.monotonic() - begun:.1f} s)", flush=True)
        context.close()


main()
