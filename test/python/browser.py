"""Pages in a real browser, as a person sees them."""

from __future__ import annotations

import html
import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium")

needs_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="needs the Debian package chromium, which tools/setup installs"
)

_FRAME = """
<!doctype html>
<iframe id="page" style="border:0;width:{width}px;height:800px" srcdoc="{page}"></iframe>
<script>
  const frame = document.getElementById("page"), errors = [];
  frame.addEventListener("load", () => setTimeout(() => {{
    const page = frame.contentDocument, window = frame.contentWindow;
    const found = (() => {{ {look} }})();
    document.body.innerHTML = "<p id='found'></p>";
    document.getElementById("found").textContent = "found " + JSON.stringify(found) + " found";
  }}, 100));
</script>
"""


def look(page: str, script: str, width: int, dark: bool = False) -> Any:
    """What JavaScript returns that looks at the loaded `page` and its `window`."""
    frame = _FRAME.format(width=width, look=script, page=html.escape(page))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "frame.html")
        file.write_text(frame)
        done = subprocess.run(
            [
                str(CHROMIUM),
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                f"--user-data-dir={folder}/profile",
                f"--blink-settings=preferredColorScheme={0 if dark else 1}",
                "--virtual-time-budget=5000",
                "--dump-dom",
                file.as_uri(),
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
    told = html.unescape(done.stdout).split("found ")
    assert len(told) > 1, f"the page did not load: {done.stderr[-2000:]}"
    return json.loads(told[1].removesuffix(" found</p>").rsplit(" found", 1)[0])
