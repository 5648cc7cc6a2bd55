"""The plots, as SVG written by hand: a few rectangles, lines and words need no library."""

import math
import pathlib
from xml.sax.saxutils import escape

from compare.peers import PEERS

COLOURS = {"weft": "#b3261e", "go": "#00838f", "tokio": "#6a4c93", "boost_fiber": "#b8860b", "tbb": "#2e7d32",
           "threads": "#757575", "epoll": "#455a64"}
INK, GRID, FONT = "#222", "#ddd", "font-family='sans-serif' font-size='11'"


class Canvas:
    def __init__(self, width: int, height: int):
        self.size, self.parts = (width, height), []

    def line(self, x1, y1, x2, y2, colour=GRID, width=1.0) -> None:
        self.parts.append(f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='{colour}' "
                          f"stroke-width='{width}'/>")

    def bar(self, x, y, width, height, colour) -> None:
        self.parts.append(f"<rect x='{x:.1f}' y='{y:.1f}' width='{max(width, 0.5):.1f}' height='{height}' "
                          f"fill='{colour}'/>")

    def dot(self, x, y, colour, radius=3.0) -> None:
        self.parts.append(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='{radius}' fill='{colour}' stroke='white'/>")

    def path(self, points, colour) -> None:
        text = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f"<polyline points='{text}' fill='none' stroke='{colour}' stroke-width='2'/>")

    def text(self, x, y, words, anchor="start", weight="normal", colour=INK) -> None:
        self.parts.append(f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' font-weight='{weight}' "
                          f"fill='{colour}'>{escape(words)}</text>")

    def legend(self, x, y, peers) -> None:
        for p in peers:
            self.dot(x, y - 4, COLOURS[p], 4)
            self.text(x + 8, y, PEERS[p].title)
            x += 24 + 7 * len(PEERS[p].title)

    def write(self, path: pathlib.Path) -> None:
        w, h = self.size
        path.write_text(f"<svg xmlns='http://www.w3.org/2000/svg' width='{w}' height='{h}' viewBox='0 0 {w} {h}' {FONT}>\n"
                        f"<rect width='{w}' height='{h}' fill='white'/>\n" + "\n".join(self.parts) + "\n</svg>\n")


class LogScale:
    """Numbers from low to high onto pixels from a to b."""

    def __init__(self, low: float, high: float, a: float, b: float):
        self.low, self.high, self.a, self.b = math.log(low), math.log(max(high, low * 1.01)), a, b

    def __call__(self, x: float) -> float:
        return self.a + (math.log(x) - self.low) / (self.high - self.low) * (self.b - self.a)


def decades(low: float, high: float) -> list[float]:
    return [10.0 ** e for e in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


def short(x: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if x >= size:
            return f"{x / size:g}{unit}"
    return f"{x:g}"


def ratios(rows: list[dict], peers: list[str], path: pathlib.Path) -> None:
    """A bar a line: Go over weft. The other peers are dots on it."""
    rows = [row for row in rows if any(row["over"].values())]
    others = [p for p in peers if p != "weft" and any(row["over"].get(p) for row in rows)]
    if not rows:
        return
    values = [x for row in rows for x in row["over"].values() if x]
    low, high = min(0.3, *values), max(10.0, *values)
    left, top, step, width = 360, 58, 15, 1000
    canvas = Canvas(width, top + step * len(rows) + 16)
    scale = LogScale(low, high, left, width - 20)
    bottom = top + step * len(rows)
    canvas.text(12, 20, "How many times weft's figure the others' are (logarithmic; right of 1 weft is better)", weight="bold")
    canvas.legend(left, 38, others)
    for tick in [0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000, 10_000]:
        if low <= tick <= high:
            canvas.line(scale(tick), top, scale(tick), bottom, INK if tick == 1 else GRID)
            canvas.text(scale(tick), top - 4, f"{tick:g}x", "middle")
    for i, row in enumerate(rows):
        y = top + i * step
        canvas.text(left - 8, y + 11, f"{row['title']}, P = {row['procs']}", "end")
        for p in others:
            over = row["over"].get(p)
            if not over:
                continue
            if p == "go":
                start, end = sorted((scale(1), scale(over)))
                canvas.bar(start, y + 2, end - start, step - 5, COLOURS[p] if over >= 1 else "#c0392b")
            else:
                canvas.dot(scale(over), y + step / 2, COLOURS[p])
    canvas.write(path)


def panel(canvas: Canvas, data: dict, x: int, y: int, width: int, height: int) -> None:
    """One small chart, both axes logarithmic; the numbers along it are those that were measured."""
    points = [point for line in data["lines"].values() for point in line]
    ticks = sorted({point[0] for point in points})
    low, high = min(p[1] for p in points), max(p[1] for p in points)
    across = LogScale(ticks[0], ticks[-1], x + 46, x + width - 12)
    up = LogScale(low / 1.3, high * 1.3, y + height - 22, y + 22)
    canvas.text(x + 46, y + 12, data["title"], weight="bold")
    for tick in ticks:
        canvas.line(across(tick), y + 22, across(tick), y + height - 22)
        canvas.text(across(tick), y + height - 8, short(tick), "middle")
    for tick in (m * d for d in decades(low, high) for m in (1, 2, 5)):
        if low / 1.3 <= tick <= high * 1.3:
            canvas.line(x + 46, up(tick), x + width - 12, up(tick))
            canvas.text(x + 42, up(tick) + 4, short(tick), "end")
    for p, line in data["lines"].items():
        shown = [(across(a), up(b)) for a, b in line]
        canvas.path(shown, COLOURS[p])
        for a, b in shown:
            canvas.dot(a, b, COLOURS[p])


def grid(panels: list[dict], title: str, columns: int, path: pathlib.Path) -> None:
    if not panels:
        return
    width, height, top = 330, 230, 52
    rows = math.ceil(len(panels) / columns)
    canvas = Canvas(columns * width + 10, top + rows * height)
    canvas.text(12, 20, title, weight="bold")
    canvas.legend(16, 40, list(dict.fromkeys(p for data in panels for p in data["lines"])))
    for i, data in enumerate(panels):
        panel(canvas, data, i % columns * width, top + i // columns * height, width, height)
    canvas.write(path)


def draw(data: dict, folder: pathlib.Path) -> list[str]:
    """All that the data has something for. Returns the names of the files."""
    folder.mkdir(parents=True, exist_ok=True)
    ratios(data["lines"], data["peers"], folder / "ratios.svg")
    scaling = data.get("scaling", {})
    grid(scaling.get("procs", []), "The cost of an operation with 1 to 8 Ps (less is better)", 3, folder / "scaling-procs.svg")
    grid(scaling.get("size", []), "The cost of an operation with 10 to 10^6 goroutines (less is better)", 2,
         folder / "scaling-goroutines.svg")
    drawn = {"ratios.svg": any(any(row["over"].values()) for row in data["lines"]),
             "scaling-procs.svg": bool(scaling.get("procs")), "scaling-goroutines.svg": bool(scaling.get("size"))}
    return [name for name, there in drawn.items() if there]
