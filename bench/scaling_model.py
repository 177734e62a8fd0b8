#!/usr/bin/env python3
"""Models the speed of decoding and prefill with many cores, where no such machine was measured.

    scaling_model.py [--json]

Prints tokens per second for a server with groups of 8 cores that share a cache (CCDs), and the share of the step that
each limit takes. docs/SCALING.md explains the model. Every constant below is named with its source: "measured" on 2
cores of Zen 4 (docs/BENCHMARKS.md), or "assumed" from published figures of EPYC 9004 and 9005.
"""

import argparse
import json

NS = 1e-9
CORES_PER_CCD = 8
CCD_BANDWIDTH = 52e9  # assumed: reads of one CCD
CORE_BANDWIDTH = 30e9  # measured: one core alone reads 27 to 34 GB/s
SOCKET_BANDWIDTH = 400e9  # assumed: 12 channels of DDR5-4800 at 87 % of 461 GB/s
LINE_IN_CCD = 45 * NS  # assumed: a cache line from another core of the CCD
LINE_ACROSS = 150 * NS  # assumed: a cache line from another CCD
LINES_IN_FLIGHT = 8  # assumed: lines that a thread obtains at the same time when it starts a job
START_OF_JOB = 1.0e-6  # measured: empty job of 2 threads with 16 tasks each (pool_bench)
INT8_OPS = 470e9  # measured: vpdpbusd of one core (machine_probe)
KERNEL_SHARE = 0.70  # measured: share of INT8_OPS with 16 and more rows (model_pass_bench)
READ_SHARE = 0.95  # measured: share of the read bandwidth with one row (model_pass_bench)
MIN_WORK_PER_TASK = 1 << 18  # multiply-adds (engine/layers/linear/linear_matrix.cc)
PANELS_PER_GROUP = {True: 4, False: 2}  # of 16 outputs, for up to 4 rows and for more
TASKS_PER_THREAD = 16
# measured by counting: jobs of a step of the 0.5B shape besides one for each matrix, per layer
OTHER_JOBS = {1: 0, 16: 5.8, 512: 5.8}
# measured: time outside of the kernels of linear layers, per row and layer of the 0.5B shape (perf, one thread)
OTHER_ONE_ROW = 15e-6

SHAPES = {
    "0.5B, int8": dict(layers=24, matrices=[(1152, 896), (896, 896), (9728, 896), (896, 4864)], head=(151936, 896),
                       bytes_per_weight=1.016, width=896),
    "8B, Q4_K_M": dict(layers=32, matrices=[(6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336)],
                       head=(128256, 4096), bytes_per_weight=0.63, width=4096),
}


def bandwidth(threads):
    ccds = -(-threads // CORES_PER_CCD)
    return min(threads * CORE_BANDWIDTH, ccds * CCD_BANDWIDTH, SOCKET_BANDWIDTH)


def job_overhead(threads):
    """Seconds for starting a job and waiting for its end, with the groups of ThreadPool."""
    if threads == 1:
        return 0.0
    groups = -(-threads // CORES_PER_CCD)
    publish = threads * (LINE_ACROSS if groups > 1 else LINE_IN_CCD) / LINES_IN_FLIGHT
    see_the_job = (LINE_ACROSS if groups > 1 else 0) + (min(threads, CORES_PER_CCD) - 1) * LINE_IN_CCD
    count_in_group = min(threads, CORES_PER_CCD) * LINE_IN_CCD
    count_groups = (groups - 1) * LINE_ACROSS
    return START_OF_JOB + publish + see_the_job + count_in_group + count_groups


def old_job_overhead(threads):
    """With one counter that each task increments, and threads that look at every other thread's share."""
    line = LINE_ACROSS if threads > CORES_PER_CCD else LINE_IN_CCD
    return START_OF_JOB + threads * line / LINES_IN_FLIGHT + TASKS_PER_THREAD * threads * line + threads * line


def useful_threads(out, columns, rows, threads):
    groups = -(-out // (16 * PANELS_PER_GROUP[rows <= 4]))
    return max(1, min(threads, groups, rows * out * columns // MIN_WORK_PER_TASK + 1))


def step(shape, rows, threads):
    """Returns seconds by cause. The head has one row in prefill."""
    memory = arithmetic = few_tasks = 0.0
    matrices = [(m, rows) for m in shape["matrices"]] * shape["layers"]
    matrices.append((shape["head"], rows if rows < 512 else 1))
    for (out, columns), m in matrices:
        def seconds(used):
            read = out * columns * shape["bytes_per_weight"] / (bandwidth(used) * READ_SHARE)
            return read, 2.0 * m * out * columns / (INT8_OPS * KERNEL_SHARE * used)
        read, compute = seconds(threads)
        memory += read
        arithmetic += max(0.0, compute - read)
        few_tasks += max(seconds(useful_threads(out, columns, m, threads))) - max(read, compute)
    jobs = len(matrices) + OTHER_JOBS[rows] * shape["layers"]
    other = OTHER_ONE_ROW * shape["layers"] * shape["width"] / 896 * (rows if rows == 1 else rows / threads)
    return {"memory": memory, "arithmetic": arithmetic, "too few tasks": few_tasks,
            "jobs": jobs * job_overhead(threads), "other layers": other}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object per row")
    args = parser.parse_args()
    counts = [1, 2, 8, 16, 32, 64, 96, 192]
    if not args.json:
        print("| threads | " + " | ".join(str(n) for n in counts) + " |")
        print("|---" * (len(counts) + 1) + "|")
        for name, function in [("one counter per pool", old_job_overhead), ("groups of 8 threads", job_overhead)]:
            print(f"| empty job, {name}, us | " +
                  " | ".join("0" if n == 1 else f"{function(n) * 1e6:.1f}" for n in counts) + " |")
        print("\n| | threads | tokens/s | memory | arithmetic | too few tasks | jobs | other layers |")
        print("|---|---|---|---|---|---|---|---|")
    for name, shape in SHAPES.items():
        for rows, what in [(1, "1 stream"), (16, "16 streams"), (512, "prefill of 512")]:
            for threads in counts:
                parts = step(shape, rows, threads)
                total = sum(parts.values())
                if args.json:
                    print(json.dumps({"model": name, "job": what, "threads": threads, "tokens/s": rows / total,
                                      "shares": {k: v / total for k, v in parts.items()}}))
                elif threads in (1, 2, 8, 64, 192):
                    print(f"| {name}: {what} | {threads} | {rows / total:,.0f} | " +
                          " | ".join(f"{v / total * 100:.0f} %" for v in parts.values()) + " |")


if __name__ == "__main__":
    main()
