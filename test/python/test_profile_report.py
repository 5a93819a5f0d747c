"""The page of a profile: complete, without anything beside it, and whole in a browser."""

from __future__ import annotations

import itertools
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch
from behaviour import hot, torch_lazy
from browser import look, needs_browser

pytestmark = pytest.mark.recording

VOID = {"meta", "link", "br", "img", "input", "hr", "polygon", "path", "polyline", "ellipse"}


class Page(HTMLParser):
    """The text of a page by section, and what it asks for from elsewhere."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.sections: dict[str, str] = {}
        self.asks_for: list[str] = []
        self._open: list[str] = []
        self._heading = ""
        self.feed(html)
        assert not self._open, f"elements are left open: {self._open}"

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("src", "href", "xlink:href") and not (value or "").startswith("#"):
                self.asks_for.append(f"{tag} {value}")
        if tag not in VOID:
            self._open.append(tag)
        if tag == "h2":
            self._heading = ""

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self._open.pop() == tag

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_data(self, text):
        if "style" in self._open or "script" in self._open:
            return
        if "h2" in self._open:
            self._heading += text
        self.sections[self._heading] = self.sections.get(self._heading, "") + text


def train(x: torch.Tensor, w: torch.Tensor) -> float:
    return ((x @ w).tanh() * 2 + 1).sum().item()


sizes = itertools.count(29)  # a window of another size is another window, which is not hot yet


@pytest.fixture
def profile(device) -> torch_lazy.profile:
    """Of hot windows, one that became hot and one that left its trace."""
    size = next(sizes)
    x, w = torch.randn(5, size).to(device), torch.randn(size, 4).to(device)
    hot(train, x, w)
    with torch_lazy.profile() as p:
        train(x, w)
        hot(lambda: (x * 3).exp().mean().item())
        (x @ w).tanh().sinh().sum().item()
    return p


@pytest.fixture
def html(profile, tmp_path: Path) -> str:
    profile.report(tmp_path / "report.html")
    return (tmp_path / "report.html").read_text()


@pytest.mark.kernels
def test_the_page_says_what_ran_and_from_which_line(html):
    sections = Page(html).sections

    assert "return ((x @ w).tanh() * 2 + 1).sum().item()" in sections["Windows"]
    assert "1 guard failed" in sections["Windows"]
    assert "aten::mm" in sections["Kernels and library calls"]
    assert "kernel_" in sections["Kernels and library calls"]
    assert "aten::_local_scalar_dense" in sections["Sync points"]
    assert "recorded aten::sinh" in sections["Guard failures"]
    assert "test_profile_report.py" in sections["Compiles"]
    assert "left the known traces" in sections["Where the time went"]


def test_the_page_needs_nothing_beside_it(html):
    assert Page(html).asks_for == []
    assert "@import" not in html
    assert "url(" not in html


def test_graphs_are_drawn(html):
    assert "<svg" in html[html.index("<h2>Graphs") :]


def test_without_graphviz_the_text_of_graphs_is_shown(profile, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    profile.report(tmp_path / "report.html")

    graphs = Page((tmp_path / "report.html").read_text()).sections["Graphs"]
    assert "needs graphviz' program `dot`" in graphs
    assert "aten::tanh" in graphs


def test_what_a_program_is_called_is_not_taken_for_html(device, tmp_path):
    x = torch.randn(3).to(device)
    code = compile("y = (x * 2).sum().item()", "<b>&made up", "exec")

    with torch_lazy.profile() as p:
        exec(code, {"x": x})
    p.report(tmp_path / "report.html")

    page = Page((tmp_path / "report.html").read_text())
    assert "<b>&made up:1" in page.sections["Windows"]


def test_a_profile_of_nothing_says_so(device, tmp_path):
    with torch_lazy.profile() as p:
        pass

    p.report(tmp_path / "report.html")

    sections = Page((tmp_path / "report.html").read_text()).sections
    assert "Nothing was recorded on device lazy" in sections["Where the time went"]
    assert "Windows" not in sections


@pytest.mark.kernels
@needs_browser
@pytest.mark.parametrize("width", [1280, 400])
def test_the_page_fits_a_screen_and_draws_its_timeline(html, width):
    seen = look(
        html,
        """
        const canvas = page.querySelector("canvas"), area = canvas.getBoundingClientRect();
        const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        const isCut = table => table.scrollWidth > table.clientWidth;
        return {
          wide: page.documentElement.scrollWidth,
          cut: [...page.querySelectorAll(".table")].filter(isCut).length,
          legend: [...page.querySelectorAll("#timeline-legend li")].map(li => li.textContent),
          timeline: [area.width, area.height],
          drawn: new Set(new Uint32Array(pixels.buffer)).size,
        };
        """,
        width,
    )

    assert seen["wide"] <= width
    assert seen["cut"] == 0, "tables whose columns are not all in view"
    assert {"kernel", "library call", "sync", "hot window", "compile"} <= set(seen["legend"])
    assert seen["timeline"][0] > 0.8 * width
    assert seen["timeline"][1] > 100
    assert seen["drawn"] > 8, "colours in the timeline"


@needs_browser
def test_the_page_is_dark_where_the_reader_wishes_it(html):
    script = "return window.getComputedStyle(page.body).backgroundColor;"

    light, dark = (look(html, script, 800, dark=dark) for dark in (False, True))

    assert light == "rgb(251, 251, 249)"
    assert dark == "rgb(20, 23, 26)"


@needs_browser
def test_the_timeline_can_be_zoomed_and_tells_what_is_under_the_pointer(html):
    seen = look(
        html,
        """
        const canvas = page.querySelector("canvas"), tip = page.getElementById("tip");
        const at = (x, y, kind) => {
          const area = canvas.getBoundingClientRect();
          const where = {clientX: area.left + x, clientY: area.top + y};
          canvas.dispatchEvent(new window.PointerEvent(kind, where));
          return tip.hidden ? "" : tip.textContent;
        };
        const tips = () => {
          const found = new Set();
          for (let x = 0; x < canvas.clientWidth; x += 2)
            for (let y = 20; y < canvas.clientHeight; y += 6) found.add(at(x, y, "pointermove"));
          return [...found];
        };
        const before = tips();
        for (let i = 0; i < 4; ++i) page.querySelector("[data-zoom='0.5']").click();
        return {before, after: tips()};
        """,
        1000,
    )

    assert any("test_profile_report.py" in tip for tip in seen["before"])
    assert set(seen["after"]) != set(seen["before"])
