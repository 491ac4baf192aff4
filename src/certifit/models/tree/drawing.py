"""A tree as a picture."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from certifit._types import Array

__all__ = ["draw_tree"]

BOX = (1.55, 0.62)
"""Width and height of a box; columns are 1.75 apart, levels 1.15."""
COLUMN, LEVEL = 1.75, 1.15
PALETTE = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2", "#eeca3b", "#9d755d")


def draw_tree(model: Any, ax: Any, max_depth: int | None, precision: int) -> Any:
    """Boxes with questions, colored by what they predict: yes goes left, no goes right."""
    import matplotlib.pyplot as plt  # only drawings need it
    from matplotlib.patches import FancyBboxPatch

    place, ends = _layout(model, max_depth)
    width = COLUMN * (1 + max(x for x, _ in place.values()))
    depth = max(level for _, level in place.values())
    if ax is None:
        _, ax = plt.subplots(figsize=(max(4.0, 1.05 * width), max(2.2, 1.25 * (depth + 1))), layout="constrained")
    ax.set(xlim=(-COLUMN / 2 - 0.1, width - COLUMN / 2 + 0.1), ylim=(-depth * LEVEL - 0.6, 0.6))
    ax.axis("off")
    labels = {node: _label(model, node, ends, precision) for node in place}
    # As large as the longest line and the tallest label allow: a character is some 0.6 of the font size wide.
    extent, points = ax.get_window_extent(), 72 / ax.figure.dpi
    wide = (
        extent.width
        * points
        / (width + 0.2)
        * BOX[0]
        / (0.62 * max(len(t) for v in labels.values() for t in v.split("\n")))
    )
    tall = (
        extent.height
        * points
        / (depth * LEVEL + 1.2)
        * BOX[1]
        / (1.3 * max(v.count("\n") + 1 for v in labels.values()))
    )
    size = float(np.clip(min(wide, tall), 2.5, 10.0))
    left = model._tree.left
    colors = _colors(model)
    for node, (column, level) in place.items():
        x, y = COLUMN * column, -LEVEL * level
        if node not in ends:
            for child, word in ((int(left[node]), "yes"), (int(left[node]) + 1, "no")):
                cx, cy = COLUMN * place[child][0], -LEVEL * place[child][1]
                ax.plot([x, cx], [y - BOX[1] / 2, cy + BOX[1] / 2], color="0.55", lw=1.0, zorder=1)
                if node == 0:  # once is enough: the rest follows
                    ax.text(
                        0.5 * (x + cx),
                        0.5 * (y + cy),
                        word,
                        fontsize=size,
                        color="0.35",
                        ha="center",
                        va="center",
                        backgroundcolor="white",
                        zorder=2,
                    )
        ax.add_patch(
            FancyBboxPatch(
                (x - BOX[0] / 2, y - BOX[1] / 2),
                *BOX,
                boxstyle="round,pad=0,rounding_size=0.08",
                zorder=3,
                facecolor=colors[node],
                edgecolor="0.35",
                linewidth=1.4 if node in ends else 0.7,
            )
        )
        ax.text(
            x,
            y,
            labels[node],
            fontsize=size,
            ha="center",
            va="center",
            zorder=4,
            color="0.1",
        )
    return ax


def _layout(model: Any, max_depth: int | None) -> tuple[dict[int, tuple[float, int]], set[int]]:
    """Column and level of each drawn node, and which of them have no drawn children."""
    leaf, left = model._tree.is_leaf, model._tree.left
    column: dict[int, float] = {}
    level: dict[int, int] = {}
    ends: set[int] = set()
    stack, next_column = [(0, 0, False)], 0
    while stack:
        node, depth, ready = stack.pop()
        if leaf[node] or (max_depth is not None and depth >= max_depth):
            column[node], level[node] = float(next_column), depth
            next_column += 1
            ends.add(node)
        elif ready:
            first = int(left[node])
            column[node], level[node] = 0.5 * (column[first] + column[first + 1]), depth
        else:
            first = int(left[node])
            stack += [(node, depth, True), (first + 1, depth + 1, False), (first, depth + 1, False)]
    return {node: (column[node], level[node]) for node in column}, ends


def _label(model: Any, node: int, ends: set[int], precision: int) -> str:
    said = model._words().prediction(model._tree, node, precision)
    if node in ends:
        head, _, rows = said.partition(" (")
        more = "" if model._tree.is_leaf[node] else "\n…"
        return "\n".join(textwrap.wrap(head, 22)[:2]) + f"\n{rows.rstrip(')')}{more}"
    # The sign and its number stay together.
    question = model._words().questions(model._tree, node, precision)[0].replace(" <= ", " ≤\u00a0")
    lines = textwrap.wrap(question, 22)
    shown = lines if len(lines) <= 2 else [lines[0], lines[1][:20] + "…"]
    return "\n".join([*shown, f"{float(model._tree.weight[node]):.6g} rows"])


def _colors(model: Any) -> list[Array]:
    """The color of the predicted class, fading to white as the node gets mixed; a scale of one color for
    numbers; of several targets, one color that fades with the impurity.
    """
    from matplotlib.colors import to_rgb

    values = model._tree.values
    white = np.ones(3)
    if model._outputs > 1:
        impurity = model._tree.loss / model._tree.weight
        purity = 1 - impurity / impurity.max() if impurity.max() > 0 else np.ones(values.shape[0])
        base = np.tile(to_rgb(PALETTE[0]), (values.shape[0], 1))
    elif hasattr(model, "classes_"):
        best, k = np.argmax(values, axis=1), values.shape[1]
        purity = (values.max(axis=1) - 1 / k) / (1 - 1 / k) if k > 1 else np.ones(values.shape[0])
        base = np.array([to_rgb(PALETTE[b % len(PALETTE)]) for b in best])
    else:
        reach = float(np.ptp(values))
        purity = (values[:, 0] - values.min()) / reach if reach > 0 else np.full(values.shape[0], 0.5)
        base = np.tile(to_rgb(PALETTE[0]), (values.shape[0], 1))
    strength = (0.08 + 0.6 * purity)[:, None]
    return list(strength * base + (1 - strength) * white)
