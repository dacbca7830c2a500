"""What MkDocs adds to docs/: pages that live elsewhere in the repository, and the files that pages link to.

Links are written as they hold in the repository, where the same files are read without a site; here they are led to
their place in the site.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
#: Files of the repository outside docs/ and the pages they become.
PAGES = {"README.md": "overview.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"} | {
    f"benchmarks/results/{path.name}": f"results/{path.name}" for path in ROOT.glob("benchmarks/results/*.md")
}
_PATHS = {page: path for path, page in PAGES.items()}
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#|/)([^)#\s]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that live outside docs/."""
    for path, page in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead the page's links to places in the site, to which the files they name are copied where they are no pages."""
    here = page.file.src_uri
    folder = posixpath.dirname(_PATHS.get(here, f"docs/{here}"))

    def led(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link[1]))
        place = PAGES.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else f"files/{path}")
        if place.startswith("files/") and (ROOT / path).is_file() and place not in files.src_uris:
            files.append(File.generated(config, place, abs_src_path=str(ROOT / path)))
        return posixpath.relpath(place, posixpath.dirname(here) or ".")

    return _LINK.sub(led, markdown)
