#!/usr/bin/env python3
"""Draws the roofline of the linear kernels and prints a table of what limits each of them.

    build/release/bench/machine_probe > probe.json
    build/release/bench/model_pass_bench 2 15 1 2 4 8 16 32 64 512 > passes.md
    bench/roofline.py probe.json passes.md docs/pictures/roofline.svg

Needs only Python's standard library. docs/BENCHMARKS.md explains the bounds.
"""

import json
import math
import sys

from gguf_bounds import AMX_BOUND, INTEL_BOUND, K_QUANTS, SCALE_BOUND, arithmetic_bound

COLORS = ["#1b6ca8", "#c0392b", "#27803b", "#8e44ad", "#d35400", "#16806a", "#7f6000", "#b03a7a", "#444444", "#5b8c00"]
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 940, 560, 70, 190, 30, 50


def read_passes(path):
    """Returns {format: [(rows, share of read speed, operations per byte, 10^9 operations per second)]}."""
    passes = {}
    with open(path, encoding="utf-8") as file:
        for line in list(file)[2:]:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            passes.setdefault(cells[0], []).append(
                (int(cells[1]), float(cells[4].rstrip(" %")), float(cells[6]), float(cells[7])))
    return passes


def is_intel(probe):
    return probe.get("cpu", "").startswith("GenuineIntel")


def roofs_of(probe):
    """Returns [(name, 10^9 operations per second, dash pattern)], the highest first."""
    int8, amx = probe["int8"] * 1e-9, probe.get("amx_int8", 0.0) * 1e-9
    if is_intel(probe) and amx == 0.0:
        scales = [(f"{kind}: {INTEL_BOUND[kind] * 100:.0f} %", int8 * INTEL_BOUND[kind], "4 3")
                  for kind in ("Q8_0", "Q4_K", "Q6_K")]
        return [("vpdpbusd", int8, ""), *scales, ("FMA", probe["fma"] * 1e-9, "")]
    roofs = [("vpdpbusd", int8, ""), ("scales of 32 columns: 86 %", int8 * 32 / 37, "4 3"),
             ("K-quants: 77 %", int8 * K_QUANTS, "4 3"), ("vdpbf16ps", probe["bfloat16"] * 1e-9, "")]
    if amx > 0.0:
        roofs = [("tdpbssd", amx, ""), ("tdpbf16ps", probe["amx_bfloat16"] * 1e-9, ""), *roofs]
    return roofs


def draw(probe, passes):
    read = probe["read"] * 1e-9
    points = [(intensity, rate) for rows in passes.values() for _, _, intensity, rate in rows]
    x_low, x_high = math.floor(math.log2(min(p[0] for p in points))), math.ceil(math.log2(max(p[0] for p in points)))
    y_low, y_high = math.floor(math.log2(min(p[1] for p in points))), math.ceil(math.log2(roofs_of(probe)[0][1]))

    def x_of(value):
        return LEFT + (math.log2(value) - x_low) / (x_high - x_low) * (WIDTH - LEFT - RIGHT)

    def y_of(value):
        return HEIGHT - BOTTOM - (math.log2(value) - y_low) / (y_high - y_low) * (HEIGHT - TOP - BOTTOM)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
           f'font-size="12">', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>']

    def line(x1, y1, x2, y2, color, dash=""):
        out.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}"'
                   + (f' stroke-dasharray="{dash}"' if dash else "") + '/>')

    def text(x, y, words, anchor="start", color="#222222"):
        out.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}">{words}</text>')

    for e in range(x_low, x_high + 1):
        line(x_of(2**e), TOP, x_of(2**e), HEIGHT - BOTTOM, "#eeeeee")
        text(x_of(2**e), HEIGHT - BOTTOM + 16, f"{2**e:g}", "middle")
    for e in range(y_low, y_high + 1):
        line(LEFT, y_of(2**e), WIDTH - RIGHT, y_of(2**e), "#eeeeee")
        text(LEFT - 6, y_of(2**e) + 4, f"{2**e:g}", "end")
    text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, "operations per byte of weights", "middle")
    text(LEFT, TOP - 12, f"10^9 operations per second, {probe['threads']} threads")

    roofs = roofs_of(probe)
    for name, rate, dash in roofs:
        line(x_of(max(rate / read, 2**x_low)), y_of(rate), WIDTH - RIGHT, y_of(rate), "#222222", dash)
        text(WIDTH - RIGHT + 4, y_of(rate) + 4, name)
    start = max(2**x_low, 2**y_low / read)
    line(x_of(start), y_of(start * read), x_of(roofs[0][1] / read), y_of(roofs[0][1]), "#222222")
    text(x_of(start) + 26, y_of(start * read) - 24, f"memory, {read:.1f} GB/s")
    for i, (name, rows) in enumerate(passes.items()):
        color = COLORS[i % len(COLORS)]
        places = " ".join(f"{x_of(intensity):.1f},{y_of(rate):.1f}" for _, _, intensity, rate in rows)
        out.append(f'<polyline points="{places}" fill="none" stroke="{color}" stroke-opacity="0.4"/>')
        for count, _, intensity, rate in rows:
            out.append(f'<circle cx="{x_of(intensity):.1f}" cy="{y_of(rate):.1f}" r="3.5" fill="{color}">'
                       f'<title>{name}, {count} rows: {rate:.0f} Gop/s</title></circle>')
        y = HEIGHT - BOTTOM - 16 * (len(passes) - i)
        out.append(f'<circle cx="{WIDTH - RIGHT + 12}" cy="{y - 4}" r="3.5" fill="{color}"/>')
        text(WIDTH - RIGHT + 22, y, name)
    out.append("</svg>")
    return "\n".join(out) + "\n"


def table(probe, passes):
    """Prints for each format and number of rows: share of the bound, and what sets the bound."""
    all_rows = sorted({count for rows in passes.values() for count, *_ in rows})
    print("| weights | bound by scales | " + " | ".join(f"{n} row{'s' if n > 1 else ''}" for n in all_rows) + " |")
    print("|---" * (len(all_rows) + 2) + "|")
    for name, rows in passes.items():
        arithmetic = arithmetic_bound(name, probe) * 1e-9
        cells = []
        for _, read_share, _, rate in rows:
            share = rate / arithmetic * 100
            cells.append(f"{read_share:.0f} % memory" if read_share >= share else f"{share:.0f} % arithmetic")
        scales = (AMX_BOUND.get(name, 0.5) if "amx_int8" in probe else INTEL_BOUND[name] if is_intel(probe)
                  else SCALE_BOUND[name])
        print(f"| {name} | {scales * 100:.0f} % | " + " | ".join(cells) + " |")


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        probe = json.load(file)
    passes = read_passes(sys.argv[2])
    with open(sys.argv[3], "w", encoding="utf-8") as file:
        file.write(draw(probe, passes))
    table(probe, passes)


if __name__ == "__main__":
    main()
