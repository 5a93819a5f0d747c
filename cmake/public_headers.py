"""Copies the headers that a backend from outside may include, as <torch_lazy/FOLDER/FILE.h>.

These are the headers of csrc/ that show something to other libraries (TORCH_LAZY_API,
base/api.h), and all that those include. In the copies, includes of one another begin with
torch_lazy/ too: a name such as "base/config.h" could be another project's.
"""

import re
import sys
from pathlib import Path

INCLUDE = re.compile(r'^(\s*#\s*include\s*)"([^"]+)"', re.MULTILINE)
SHOWN = re.compile(r"\bTORCH_LAZY_API\b")


def public_headers(sources: Path) -> dict[Path, str]:
    """The text of each public header, by its path below `sources`."""
    texts = {path.relative_to(sources): path.read_text() for path in sources.rglob("*.h")}
    public: dict[Path, str] = {}
    waiting = [path for path, text in texts.items() if SHOWN.search(text)]
    while waiting:
        path = waiting.pop()
        if path in public:
            continue
        public[path] = texts[path]
        waiting += [Path(name) for _, name in INCLUDE.findall(texts[path])]
    return public


def write(headers: dict[Path, str], folder: Path) -> None:
    """Makes `folder` hold these headers and no others; what is equal keeps its time."""
    for path, text in headers.items():
        target = folder / path
        text = INCLUDE.sub(r"\1<torch_lazy/\2>", text)
        if not target.exists() or target.read_text() != text:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
    for old in folder.rglob("*.h"):
        if old.relative_to(folder) not in headers:
            old.unlink()


if __name__ == "__main__":
    write(public_headers(Path(sys.argv[1])), Path(sys.argv[2]))
