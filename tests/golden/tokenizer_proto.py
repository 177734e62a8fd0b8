# Packages: none.
"""Reads and writes protocol buffer messages as lists of (field, wire type, value), for editing SentencePiece models."""


def read_varint(data, pos):
    value = shift = 0
    while True:
        byte = data[pos]
        pos += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, pos


def parse(data):
    fields = []
    pos = 0
    while pos < len(data):
        key, pos = read_varint(data, pos)
        kind = key & 7
        if kind == 0:
            value, pos = read_varint(data, pos)
        else:
            length = {1: 8, 5: 4}.get(kind)
            if length is None:
                length, pos = read_varint(data, pos)
            value = data[pos : pos + length]
            pos += length
        fields.append((key >> 3, kind, value))
    return fields


def varint(value):
    out = b""
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def dump(fields):
    out = b""
    for field, kind, value in fields:
        out += varint(field << 3 | kind)
        if kind == 0:
            out += varint(value)
        else:
            out += (varint(len(value)) if kind == 2 else b"") + value
    return out


def get(fields, number, default=None):
    return next((value for field, _, value in fields if field == number), default)


def replaced(fields, number, kind, value):
    return [f for f in fields if f[0] != number] + [(number, kind, value)]
