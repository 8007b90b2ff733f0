"""Looks at the pages that --report and `report` write, in headless Chromium. See tools/check-page."""

import pathlib
import subprocess
import sys
import tempfile
import time

from playwright.sync_api import expect, sync_playwright

CHROMIUM = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]
LUD = ["--topology", "v100_node", "--workload", "lud:size=128", "--quiet"]
MANAGED = ["--topology", "gtx1080ti_node", "--workload", "hotspot:size=128,memory=managed", "--quiet"]


def write_pages(program, folder):
    """A page that a run writes, one with unified memory, and one of two runs."""
    def call(*arguments):
        subprocess.run([program, *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    call(*LUD, "--report", "run.html", "--output", "a", "--sample-interval", "1us", "--profile-instructions")
    call(*LUD, "--output", "b", "--set", "gpu.sm[*].clock=1000 MHz")
    call(*MANAGED, "--report", "managed.html")
    call("report", "a", "b", "--output", "two.html")
    return [folder / name for name in ["run.html", "managed.html", "two.html"]]


def opened(context, path):
    """The page, and what goes wrong in it."""
    page = context.new_page()
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type in ["error", "warning"] else None)
    page.on("request", lambda request: problems.append(request.url) if not request.url.startswith(("file:", "data:")) else None)
    page.goto(path.as_uri())
    return page, problems


def columns_sort(page):
    """By mouse and by keyboard; what is sorted is said to those who do not see it."""
    table = page.locator("#kernels table")
    header = table.locator("thead th", has_text="SM cycles")
    cells = lambda: [float(value) for value in table.locator("tbody tr").evaluate_all(
        "(rows, column) => rows.map((row) => row.cells[column].dataset.value)", header.evaluate("(th) => th.cellIndex"))]
    header.locator("button").click()
    expect(header).to_have_attribute("aria-sort", "descending")
    assert len(cells()) == 3 and cells() == sorted(cells(), reverse=True), cells()
    header.locator("button").press("Enter")
    expect(header).to_have_attribute("aria-sort", "ascending")
    assert cells() == sorted(cells()), cells()
    names = table.locator("thead th").first
    names.locator("button").press("Space")
    expect(names).to_have_attribute("aria-sort", "ascending")
    expect(header).not_to_have_attribute("aria-sort", "ascending")
    assert table.locator("tbody th").all_inner_texts() == ["lud_diagonal", "lud_internal", "lud_perimeter"]


def themes_differ(page):
    """Paper, ink, charts and heat maps follow the theme."""
    looks = []
    for scheme in ["light", "dark"]:
        page.emulate_media(color_scheme=scheme)
        looks.append(page.evaluate("""() => [
            getComputedStyle(document.body).backgroundColor,
            getComputedStyle(document.querySelector('#stalls .chart text')).fill,
            getComputedStyle(document.querySelector('#balance .chart path, #balance .chart rect[rx]')).fill,
            getComputedStyle(document.querySelector('.picture rect.loaded')).fill,
        ]"""))
    page.emulate_media(color_scheme="light")
    assert all(light != dark for light, dark in zip(*looks)), looks


def everything_is_named(page):
    """Each picture has a name, each table a caption, and each chart its numbers."""
    assert page.locator("svg:not([role=img][aria-label])").count() == 0
    assert page.locator("table:not(:has(caption))").count() == 0
    assert page.locator(".chart").count() == page.locator(".chart details table").count() > 3


def nothing_is_cut_off(page, name):
    """No text of a chart reaches beyond its picture."""
    cut = page.evaluate("""() => [...document.querySelectorAll('.chart svg')].flatMap((svg) => {
        const frame = svg.getBoundingClientRect();
        return [...svg.querySelectorAll('text')].filter((text) => text.textContent.trim() !== "" && (() => {
            const box = text.getBoundingClientRect();
            return box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1;
        })()).map((text) => text.textContent.trim());
    })""")
    assert not cut, f"{name}: {cut}"


def look(page, folder, name):
    """Screenshots at desktop and phone width, light and dark, none of which scrolls sideways; and what a printer gets."""
    for width, height, device in [(1280, 900, "desktop"), (390, 844, "phone")]:
        page.set_viewport_size({"width": width, "height": height})
        for scheme in ["light", "dark"]:
            page.emulate_media(color_scheme=scheme)
            wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide <= 0, f"{name} is {wide} pixels wider than a window of {width}"
            page.screenshot(path=folder / f"report-{name}-{device}-{scheme}.png", full_page=True)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(color_scheme="light", media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0, "a printed page has all of its tables"
    expect(page.locator("nav")).to_be_hidden()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]").count() == 0, "and the page is then as it was"
    page.emulate_media(color_scheme="light", media="screen")
    page.pdf(path=folder / f"report-{name}.pdf", format="A4")


def without_script(playwright, chromium, path):
    """The page reads as it is: tables, folded tables, pictures."""
    browser = playwright.chromium.launch(executable_path=chromium, headless=True, args=CHROMIUM, chromium_sandbox=False)
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(path.as_uri())
    expect(page.locator("#kernels tbody tr")).to_have_count(3)
    expect(page.locator("thead button")).to_have_count(0)
    page.locator("#stalls summary").first.click()
    expect(page.locator("#stalls details table").first).to_be_visible()
    browser.close()


def main():
    program, chromium, folder = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], pathlib.Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as profile, tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        pages = write_pages(program, pathlib.Path(place))
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=chromium, headless=True, args=CHROMIUM, chromium_sandbox=False)
        for path in pages:
            page, problems = opened(context, path)
            everything_is_named(page)
            nothing_is_cut_off(page, path.name)
            themes_differ(page)
            if path.stem != "managed":
                columns_sort(page)
            look(page, folder, path.stem)
            assert not problems, problems
            page.close()
            print(f"{path.name}: ok ({time.monotonic() - begun:.1f} s)", flush=True)
        context.close()
        without_script(playwright, chromium, pages[0])
        print(f"without a script: ok ({time.monotonic() - begun:.1f} s)", flush=True)


main()
