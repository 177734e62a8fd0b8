# Packages: safetensors, torch (requirements.txt).
"""Prints each tensor that differs between two safetensors files, with the largest difference.
scripts/check_goldens.sh runs it.

    python tests/golden/compare_tensors.py FILE FILE
"""
import argparse

from safetensors.torch import load_file


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs=2, metavar="FILE")
    first, second = (load_file(path) for path in parser.parse_args().files)
    for name in sorted(first.keys() | second.keys()):
        if name not in first or name not in second:
            print(f"{name}: only in one file")
        elif first[name].shape != second[name].shape or first[name].dtype != second[name].dtype:
            shapes = [f"{tensors[name].dtype} {tuple(tensors[name].shape)}" for tensors in (first, second)]
            print(f"{name}: {shapes[0]}, {shapes[1]}")
        else:
            difference = float((first[name].double() - second[name].double()).abs().max())
            if difference != 0.0:
                print(f"{name}: largest difference {difference:.1e}")


if __name__ == "__main__":
    main()
