# Packages: jsonschema (requirements.txt).
"""Makes tests/data/json_schema_golden.jsonl: random JSON Schemas of the keywords that the program enforces, and JSON
texts that the validator of the package jsonschema accepts or rejects. Each line has a schema and its texts:

    {"schema": SCHEMA, "valid": [TEXT...], "invalid": [TEXT...]}

The texts are spelled as the program writes them: no whitespace, members in the order of "properties", integers without
a fraction. Half of the texts are instances with a random change.

    python tests/golden/json_schema_golden.py [--output DIRECTORY]
"""

import argparse
import json
import pathlib
import random

import jsonschema

OUT = pathlib.Path(__file__).resolve().parent.parent / "data"
NAMES = ["a", "ab", "abc", "b", "\n", "\"q\"", "é", "日本", "x/y", "~", "a b", ""]
TEXTS = ["", "a", "ab", "abc", "é", "日本語", "😀", "a\"b\\c", "\n\t\u0001", "x" * 9, "/", "\u007f\u2028"]
NUMBERS = [0, 1, -1, 7, 42, -300, 123456789, 0.5, -2.75, 1.5e-7]


def scalar(rng):
    return rng.choice([None, True, False, rng.choice(NUMBERS), rng.choice(TEXTS)])


def value(rng, depth=0):
    kind = rng.random()
    if depth >= 3 or kind < 0.6:
        return scalar(rng)
    if kind < 0.8:
        return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {name: value(rng, depth + 1) for name in rng.sample(NAMES, rng.randrange(4))}


def schema(rng, depth, definitions):
    kind = rng.random()
    if kind < 0.06:
        return rng.choice([True, False, {}])
    if kind < 0.12:
        return {"$ref": rng.choice(["#"] + ["#/$defs/" + name for name in definitions])}
    if kind < 0.2:
        return {"anyOf": [schema(rng, depth + 1, definitions) for _ in range(rng.randrange(1, 4))]}
    if kind < 0.3:
        out = {"enum": [value(rng, 1) for _ in range(rng.randrange(1, 5))]} if rng.random() < 0.7 else {"const": value(rng, 1)}
        if rng.random() < 0.3:
            out["type"] = rng.choice(["string", "integer", "number", ["null", "boolean"]])
        return out
    types = ["null", "boolean", "number", "integer", "string", "array", "object"]
    if depth >= 4:
        types = types[:5]
    out = {}
    if rng.random() < 0.9:
        out["type"] = rng.choice(types) if rng.random() < 0.8 else rng.sample(types, 2)
    chosen = out.get("type", types)
    if "string" in chosen:
        if rng.random() < 0.4:
            out["minLength"] = rng.randrange(4)
        if rng.random() < 0.4:
            out["maxLength"] = rng.randrange(6)
    if "array" in chosen and depth < 4:
        if rng.random() < 0.7:
            out["items"] = schema(rng, depth + 1, definitions)
        if rng.random() < 0.3:
            out["prefixItems"] = [schema(rng, depth + 1, definitions) for _ in range(rng.randrange(1, 4))]
        if rng.random() < 0.4:
            out["minItems"] = rng.randrange(3)
        if rng.random() < 0.4:
            out["maxItems"] = rng.randrange(4)
    if "object" in chosen and depth < 4:
        names = rng.sample(NAMES, rng.randrange(5))
        if rng.random() < 0.85:
            out["properties"] = {name: schema(rng, depth + 1, definitions) for name in names}
        if rng.random() < 0.6:
            out["required"] = rng.sample(NAMES, rng.randrange(3)) if rng.random() < 0.2 else names[:rng.randrange(4)]
        if rng.random() < 0.6:
            out["additionalProperties"] = rng.choice([False, False, True, schema(rng, depth + 1, definitions)])
    return out


def resolve(root, node):
    for _ in range(50):
        if isinstance(node, dict) and "$ref" in node:
            reference = node["$ref"]
            node = root if reference == "#" else root["$defs"][reference.rsplit("/", 1)[1]]
        elif isinstance(node, dict) and "anyOf" in node:
            node = node["anyOf"][0]
        else:
            return node
    return False


def instance(rng, root, node, depth=0):
    """Returns a value that is likely to match."""
    if isinstance(node, dict) and "anyOf" in node:
        node = rng.choice(node["anyOf"])
    node = resolve(root, node)
    if not isinstance(node, dict) or depth > 6:
        return scalar(rng)
    if "const" in node:
        return node["const"]
    if "enum" in node:
        return rng.choice(node["enum"])
    types = node.get("type", ["null", "boolean", "number", "string", "array", "object"])
    kind = rng.choice(types) if isinstance(types, list) else types
    if kind == "null":
        return None
    if kind == "boolean":
        return rng.random() < 0.5
    if kind == "number":
        return rng.choice(NUMBERS)
    if kind == "integer":
        return rng.choice([number for number in NUMBERS if isinstance(number, int)])
    if kind == "string":
        fitting = [text for text in TEXTS if node.get("minLength", 0) <= len(text) <= node.get("maxLength", 99)]
        return rng.choice(fitting or TEXTS)
    if kind == "array":
        low, high = node.get("minItems", 0), node.get("maxItems", 4)
        count = rng.randint(low, high) if low <= high else low
        prefix = node.get("prefixItems", [])
        return [instance(rng, root, prefix[i] if i < len(prefix) else node.get("items", True), depth + 1)
                for i in range(count)]
    properties = node.get("properties", {})
    required = node.get("required", [])
    out = {}
    for name, child in properties.items():
        if name in required or rng.random() < 0.6:
            out[name] = instance(rng, root, child, depth + 1)
    for name in list(required) + ([rng.choice(NAMES)] if rng.random() < 0.2 else []):
        if name not in out and (name in required or node.get("additionalProperties", True) is not False):
            out[name] = instance(rng, root, properties.get(name, node.get("additionalProperties", True)), depth + 1)
    return out


def changed(rng, data):
    """Returns data with one random change."""
    if isinstance(data, list) and data and rng.random() < 0.7:
        at = rng.randrange(len(data))
        return rng.choice([data[:at] + data[at + 1:], data[:at] + [changed(rng, data[at])] + data[at + 1:], data + [data[at]]])
    if isinstance(data, dict) and data and rng.random() < 0.8:
        out = dict(data)
        name = rng.choice(list(out))
        if rng.random() < 0.4:
            del out[name]
        else:
            out[name] = changed(rng, out[name])
        return out
    if isinstance(data, dict):
        return {**data, rng.choice(NAMES): value(rng, 2)}
    return value(rng, 1)


class Order:
    """Spells a value with its members in the order in which the program writes them."""

    def __init__(self, root):
        self.root = root

    def text(self, data, node):
        nodes = self.candidates(node)
        if isinstance(data, dict):
            names = [name for candidate in nodes for name in candidate.get("properties", {})]
            names += [name for candidate in nodes for name in candidate.get("required", [])]
            rank = {name: index for index, name in reversed(list(enumerate(names)))}
            ordered = sorted(data, key=lambda name: rank.get(name, len(names)))
            members = [json.dumps(name, ensure_ascii=False) + ":" + self.text(data[name], self.child(nodes, name))
                       for name in ordered]
            return "{" + ",".join(members) + "}"
        if isinstance(data, list):
            return "[" + ",".join(self.text(item, self.item(nodes, index)) for index, item in enumerate(data)) + "]"
        return json.dumps(data, ensure_ascii=False)

    def candidates(self, node):
        out, pending, seen = [], [node], 0
        while pending and seen < 100:
            seen += 1
            node = pending.pop()
            if not isinstance(node, dict):
                continue
            if "$ref" in node:
                reference = node["$ref"]
                pending.append(self.root if reference == "#" else self.root["$defs"][reference.rsplit("/", 1)[1]])
            elif "anyOf" in node:
                pending += node["anyOf"]
            else:
                out.append(node)
        return out

    def child(self, nodes, name):
        return {"anyOf": [node["properties"][name] if name in node.get("properties", {})
                          else node.get("additionalProperties", True) for node in nodes]}

    def item(self, nodes, index):
        return {"anyOf": [node["prefixItems"][index] if index < len(node.get("prefixItems", []))
                          else node.get("items", True) for node in nodes]}


def has_one_order(schema):
    """Returns whether the members of every object have one order: no anyOf, and no values of enum or const."""
    text = json.dumps(schema)
    return "anyOf" not in text and "enum" not in text and "const" not in text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=pathlib.Path, default=OUT)
    output = parser.parse_args().output
    rng = random.Random(20261123)
    lines = []
    while len(lines) < 400:
        definitions = ["d" + str(i) for i in range(rng.randrange(3))]
        root = schema(rng, 0, definitions)
        if isinstance(root, dict) and definitions:
            root["$defs"] = {name: schema(rng, 1, definitions) for name in definitions}
        elif definitions:
            continue
        validator = jsonschema.Draft202012Validator(root)
        order = Order(root)
        valid, invalid = {}, {}
        try:
            for _ in range(24):
                data = instance(rng, root, root)
                if rng.random() < 0.5:
                    data = changed(rng, data)
                text = order.text(data, root)
                if not has_one_order(root) and "{" in text:
                    continue
                (valid if validator.is_valid(data) else invalid)[text] = True
        except RecursionError:  # {"$ref": "#"} refers to itself, which the specification leaves undefined
            continue
        if len(valid) + len(invalid) < 3 or len(json.dumps(root)) > 1500:
            continue
        lines.append({"schema": root, "valid": list(valid)[:6], "invalid": list(invalid)[:6]})
    with open(output / "json_schema_golden.jsonl", "w", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
