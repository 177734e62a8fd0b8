#!/usr/bin/env python3
"""Prints the figures of bench/compare_peers.py or bench/compare_engines.py as a Markdown table.

    bench/peers_table.py NAME=FIGURES.json...

Each row shows the medians of up to two measurements of one model. "vs the better" is the median over the rounds of
vllmcli's speed divided by that of the fastest other program in the same round. The last column, if there are bounds, is
vllmcli's share of the bound (bench/gguf_bounds.py), the median over the rounds as well.
"""
import json
import statistics
import sys

# Each row: its label, and for each measurement the name in the label and the name in the file.
ROWS = [("prefill of {}", {"512": "prefill 512", "2,048": "prefill 2048"}),
        ("{} streams", {"1": "streams 1", "4": "streams 4"}), ("{} streams", {"16": "streams 16", "64": "streams 64"})]


def show(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def median_ratio(figures):
    """Returns None if there are only figures of vllmcli."""
    others = [values for name, values in figures.items() if name not in ("vllmcli", "bound")]
    if not others:
        return None
    return statistics.median(ours / max(theirs) for ours, *theirs in zip(figures["vllmcli"], *others))


def main():
    names, rows, rounds = [], [], set()
    for argument in sys.argv[1:]:
        model, _, path = argument.partition("=")
        with open(path) as file:
            figures = json.load(file)
        for label, measurements in ROWS:
            present = {name: task for name, task in measurements.items() if task in figures}
            if not present:
                continue
            label, tasks = label.format(" / ".join(present)), list(present.values())
            programs = [name for name in figures[tasks[0]] if name != "bound"]
            names += [name for name in programs if name not in names]
            rows.append((f"{model}: {label}", [figures[task] for task in tasks]))
            rounds.update(len(of_task["vllmcli"]) for _, of in rows for of_task in of)
    has_bounds = any("bound" in of_task for _, tasks in rows for of_task in tasks)
    headings = [*names, "vs the better", *(["share of the bound"] if has_bounds else [])]
    print("| | " + " | ".join(headings) + " |")
    print("|---" * (len(headings) + 1) + "|")
    for label, tasks in rows:
        medians = [{name: statistics.median(values) for name, values in of_task.items()} for of_task in tasks]
        cells = [" / ".join(show(m[name]) for m in medians if name in m) for name in names]
        ratios = [f"{ratio:.2f}" for ratio in map(median_ratio, tasks) if ratio]
        cells.append(" / ".join(ratios))
        if has_bounds:
            shares = [statistics.median(a / b for a, b in zip(t["vllmcli"], t["bound"])) * 100 for t in tasks]
            cells.append(" / ".join(f"{share:.0f}" for share in shares) + " %")
        print(f"| {label} | " + " | ".join(cells) + " |")
    print(f"\nrounds: {', '.join(str(count) for count in sorted(rounds))}", file=sys.stderr)


if __name__ == "__main__":
    main()
