"""Write the pages of this folder that are made from the code: ``make docs``."""

from __future__ import annotations

from pathlib import Path

from generator import categories, cli, cures, formats, guides, rules, schema, tables, truth, typescript


def pages() -> dict[str, str]:
    """Every generated page: file name to text."""
    return {
        "categories.md": categories.page(),
        "cli.md": cli.page(),
        "cures.md": cures.page(),
        "formats.md": formats.page(),
        "guides-coverage.md": guides.page(),
        "limits.md": rules.limits_page(),
        "report-schema.md": schema.page(),
        "rules.md": rules.page(),
        "tables.md": tables.page(),
        "truth.md": truth.page(),
        "../src/stepscope/web/static/core/declared.js": typescript.columns(),
        "../src/stepscope/web/static/core/document.d.ts": typescript.types(),
    }


if __name__ == "__main__":
    for page, text in pages().items():
        (Path(__file__).parent / page).write_text(text, encoding="utf-8")
