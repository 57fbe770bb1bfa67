"""The roofline as an SVG: GFLOP/s over FLOP a byte, both logarithmic, a numbered point a layer, a list beside it."""
import math
from xml.sax.saxutils import escape

LEFT, TOP, WIDTH, HEIGHT = 78, 64, 600, 430  # of the plot
LIST = LEFT + WIDTH + 28  # where the list of layers begins
COLORS = ["#0b6e99", "#c1440e", "#3f7d20", "#7b3fa0", "#a67c00", "#52606d", "#b0306a", "#1b998b"]


def decades(low, high):
    return range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)


def number(exponent):
    return f"{10 ** exponent:g}" if -3 <= exponent < 5 else f"10^{exponent}"


class Svg:
    def __init__(self, width, height):
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
                      f'height="{height}" font-family="Helvetica, Arial, sans-serif" font-size="13">',
                      f'<rect width="{width}" height="{height}" fill="white"/>']

    def line(self, x1, y1, x2, y2, color="#d5dae0", width=1.0, dash=""):
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}" '
                          f'stroke-width="{width}"{dashes}/>')

    def text(self, x, y, words, anchor="start", size=13, color="#1f2933", weight="normal", turn=0.0):
        turned = f' transform="rotate({turn:.1f} {x:.1f} {y:.1f})"' if turn else ""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{color}" '
                          f'font-weight="{weight}"{turned}>{escape(words)}</text>')

    def circle(self, x, y, radius, color):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{color}" fill-opacity="0.75" '
                          'stroke="white"/>')

    def __str__(self):
        return "\n".join([*self.parts, "</svg>", ""])


def free_place(x, y, taken, roof):
    """Beside a point, where no other label or point is, and under the roof, whose words are above it: tries rings of
    places around the point."""
    for distance in (15, 24, 34, 46, 60):
        for turn in range(12):
            angle = math.pi * (turn / 6 + 0.25)
            place = (x + distance * math.cos(angle), y - distance * math.sin(angle))
            inside = LEFT + 8 < place[0] < LEFT + WIDTH - 8 and roof + 10 < place[1] < TOP + HEIGHT - 8
            if inside and all(math.hypot(place[0] - a, place[1] - b) > reach + 9 for a, b, reach in taken):
                return place
    return x, y + 15


def picture(model, gemm, bandwidth, title, subtitle):
    rows = [row for row in model["layers"] if row["flops"] > 0 and row["ms"] > 0]
    unseen = [row for row in model["layers"] if row not in rows]
    intensities = [row["flops"] / row["bytes"] for row in rows] + [gemm / bandwidth]
    rates = [row["gflops"] for row in rows] + [gemm]
    low_x, high_x = min(intensities) / 2, max(intensities) * 2.5
    low_y, high_y = min(rates) / 2.5, gemm * 2

    def at_x(value):
        return LEFT + WIDTH * math.log(value / low_x) / math.log(high_x / low_x)

    def at_y(value):
        return TOP + HEIGHT * (1 - math.log(value / low_y) / math.log(high_y / low_y))

    height = max(TOP + HEIGHT + 56, TOP + 40 + 19 * (len(rows) + len(unseen)))
    svg = Svg(LIST + 330, height)
    svg.text(LEFT, 26, title, size=17, weight="bold")
    svg.text(LEFT, 46, subtitle, color="#52606d")
    for exponent in decades(low_x, high_x):
        for part in range(1, 10):
            value = part * 10.0 ** exponent
            if low_x <= value <= high_x:
                svg.line(at_x(value), TOP, at_x(value), TOP + HEIGHT, "#d5dae0" if part == 1 else "#f0f2f5")
                if part == 1:
                    svg.text(at_x(value), TOP + HEIGHT + 19, number(exponent), "middle")
    for exponent in decades(low_y, high_y):
        for part in range(1, 10):
            value = part * 10.0 ** exponent
            if low_y <= value <= high_y:
                svg.line(LEFT, at_y(value), LEFT + WIDTH, at_y(value), "#d5dae0" if part == 1 else "#f0f2f5")
                if part == 1:
                    svg.text(LEFT - 8, at_y(value) + 4, number(exponent), "end")
    svg.text(LEFT + WIDTH / 2, TOP + HEIGHT + 42, "FLOP per byte of inputs and outputs", "middle")
    svg.text(22, TOP + HEIGHT / 2, "GFLOP/s", "middle", turn=-90)

    # The roof, with its two words along it.
    corner = gemm / bandwidth
    start = max(low_x, low_y / bandwidth)
    svg.line(at_x(start), at_y(start * bandwidth), at_x(corner), at_y(gemm), "#1f2933", 2)
    svg.line(at_x(corner), at_y(gemm), LEFT + WIDTH, at_y(gemm), "#1f2933", 2)
    # Left of the roof's corner no point can be, where there is room.
    words = f"best matrix product: {gemm:,.0f} GFLOP/s"
    if at_x(corner) - LEFT > 250:
        svg.text(at_x(corner) - 10, at_y(gemm) + 4, words, "end")
    else:
        svg.text(LEFT + WIDTH - 6, at_y(gemm) - 8, words, "end")
    slope = math.degrees(math.atan2(at_y(gemm) - at_y(start * bandwidth), at_x(corner) - at_x(start)))
    part = 0.5
    x = at_x(start) + part * (at_x(corner) - at_x(start))
    y = at_y(start * bandwidth) + part * (at_y(gemm) - at_y(start * bandwidth))
    up = math.radians(slope - 90)
    svg.text(x + 8 * math.cos(up), y + 8 * math.sin(up), f"memory: {bandwidth:,.0f} GB/s", "middle", turn=slope)

    operators = list(dict.fromkeys(row["operator"] for row in rows))
    all_ms = sum(row["ms"] for row in model["layers"])
    points = [(at_x(row["flops"] / row["bytes"]), at_y(row["gflops"]), 4 + 12 * math.sqrt(row["ms"] / all_ms)) for row in rows]
    taken = list(points)
    svg.text(LIST, TOP + 6, "layer", weight="bold")
    svg.text(LIST + 322, TOP + 6, "of the time", "end", weight="bold")
    for index, (row, (x, y, radius)) in enumerate(zip(rows, points), 1):
        color = COLORS[operators.index(row["operator"]) % len(COLORS)]
        svg.circle(x, y, radius, color)
        place = free_place(x, y, taken, at_y(gemm))
        taken.append((*place, 4))
        svg.line(x, y, place[0], place[1], color, 0.6)
        svg.text(place[0], place[1] + 4, str(index), "middle", size=12, color=color, weight="bold")
        line = TOP + 10 + 19 * index
        svg.circle(LIST + 6, line - 4, 5, color)
        svg.text(LIST + 18, line, f"{index}  {row['layer']} ({row['operator']})", size=12)
        svg.text(LIST + 322, line, f"{100 * row['ms'] / all_ms:.1f} %", "end", size=12)
    for index, row in enumerate(unseen, len(rows) + 1):
        line = TOP + 10 + 19 * index
        svg.text(LIST + 18, line, f"{row['layer']} ({row['operator']}): moves only", size=12, color="#52606d")
        svg.text(LIST + 322, line, f"{100 * row['ms'] / all_ms:.1f} %", "end", size=12, color="#52606d")
    return str(svg)
