"""Makes tests/data/json_schema_test_suite.jsonl from a checkout of JSON-Schema-Test-Suite (MIT licence, see
docs/copyright): the required tests of draft 2020-12, and those of the formats that the program enforces. Each line is a
group of tests:

    {"group": "FILE: DESCRIPTION", "schema": SCHEMA, "tests": [[DESCRIPTION, DATA, IS_VALID]...]}

The file format.json is left out: it says that formats are not enforced, as is the default of the specification. So are
the A-labels of host names, which are valid for the specification and not for the program: docs/STRUCTURED_OUTPUT.md.

    python tests/golden/json_schema_test_suite.py CHECKOUT [--output DIRECTORY]
"""

import argparse
import json
import pathlib

OUT = pathlib.Path(__file__).resolve().parent.parent / "data"
COMMIT = "44401e0c"
FORMATS = ["date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "iri", "iri-reference", "json-pointer",
           "relative-json-pointer", "time", "uri", "uri-reference", "uri-template", "uuid"]
LEFT_OUT = ["hostname.json: validation of A-label (punycode) host names"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("checkout", type=pathlib.Path, help=f"JSON-Schema-Test-Suite at commit {COMMIT}")
    parser.add_argument("--output", type=pathlib.Path, default=OUT)
    args = parser.parse_args()
    draft = args.checkout / "tests" / "draft2020-12"
    files = sorted(path for path in draft.glob("*.json") if path.name != "format.json")
    files += [draft / "optional" / "format" / f"{name}.json" for name in FORMATS]
    with open(args.output / "json_schema_test_suite.jsonl", "w") as out:
        for path in files:
            for group in json.loads(path.read_text()):
                name = f"{path.name}: {group['description']}"
                if name in LEFT_OUT:
                    continue
                tests = [[test["description"], test["data"], test["valid"]] for test in group["tests"]]
                line = {"group": name, "schema": group["schema"], "tests": tests}
                print(json.dumps(line, ensure_ascii=False, separators=(",", ":")), file=out)


if __name__ == "__main__":
    main()
