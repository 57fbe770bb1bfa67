"""A model's structure, for terminals and notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._model import Model


def _facts(model: Model) -> list[tuple[str, str]]:
    c, s = model.config, model._session
    rows, columns = s.grid
    facts = [
        ("family", s.family),
        ("device", f"{model.device}, {model.dtype}"),
        ("images", f"{c['channels']} x {c['image_height']} x {c['image_width']}"),
        ("tokens", f"{s.tokens}: {rows} x {columns} patches of {c['patch_height']} x {c['patch_width']}"
         + (f", {s.prefix_tokens} in front" if s.prefix_tokens else "")),
        ("blocks", f"{c['depth']} of {c['dim']}, {c['heads']} heads"),
        ("result", f"{c['classes']} classes" if c["classes"] else f"{s.feature_width} features"),
        ("parameters", f"{s.parameters:,}"),
    ]  # fmt: skip
    if s.preprocessing:
        facts.append(("pictures", s.preprocessing))
    return facts


def _size(shape: list[int]) -> str:
    return " x ".join(map(str, shape))


def text(model: Model) -> str:
    facts = _facts(model)
    width = max(len(name) for name, _ in facts)
    lines = [f"{model.name}", *(f"  {name:{width}}  {value}" for name, value in facts), ""]
    # Of the blocks one is shown: they are alike.
    parts = [part for part in model._session.parts() if part[0] == 0 or (part[0] == 1 and part[1].startswith("block "))]
    for depth, name, what, shape, parameters, _ in parts:
        if depth == 1 and name != "block 0":
            continue
        label = "  " * (depth + 1) + name
        lines.append(f"{label:24} {_size(shape):>16} {parameters:>14,}  {what}".rstrip())
    return "\n".join(lines)


def html(model: Model) -> str:
    facts = "".join(f"<tr><th style='text-align:left'>{escape(n)}</th><td style='text-align:left'>{escape(v)}</td></tr>"
                    for n, v in _facts(model))  # fmt: skip
    rows: list[str] = []
    open_at: list[int] = []
    parts = model._session.parts()
    for i, (depth, name, what, shape, parameters, flops) in enumerate(parts):
        while open_at and open_at[-1] >= depth:
            open_at.pop()
            rows.append("</div></details>")
        has_parts = i + 1 < len(parts) and parts[i + 1][0] > depth
        numbers = f"{_size(shape)}" + (f", {parameters:,} parameters" if parameters else "")
        numbers += f", {flops / 1e6:,.1f} MFLOP" if flops else ""
        line = f"<b>{escape(name)}</b> {numbers}" + (f" <i>{escape(what)}</i>" if what else "")
        if has_parts:
            open_at.append(depth)
            rows.append(f"<details><summary>{line}</summary><div style='margin-left:1.5em'>")
        else:
            rows.append(f"<div>{line}</div>")
    rows.extend("</div></details>" for _ in open_at)
    return f"<div><b>{escape(model.name)}</b><table>{facts}</table>{''.join(rows)}</div>"
