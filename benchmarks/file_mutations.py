"""How a file is damaged: bits flipped, parts cut or repeated, numbers made huge, fields lost, renamed or retyped."""

import copy
import json
import re

HUGE = (10**30, 10**12, 2**63, 2**63 - 1, 2**31, -(2**63), 10**400)
ODD = (None, True, False, 0, -1, 1, 0.5, 1e308, float("nan"), float("inf"), "", "x", "float32", [], [[]], {}, {"a": 1})
WORDS = ("fdoat32", "__class__", "../../etc/passwd", "nn.Module", "os:system", "é\u0000", "bacs", "x" * 5000)

LITERALS = ("nan", "inf", "true", '"x"', "[]", "{}", "1979-05-27", "1" * 5000)
LINES = ("[method]", "[method.bacs]", "method = 3", "a = " + "[" * 3000, "model = 1")


def damage_bytes(data, rng):
    """The bytes with one to three faults."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        place, length = rng.randrange(len(data) + 1), rng.choice((1, 2, 4, 8, 64))
        fault = rng.randrange(8)
        if fault <= 1 and data:
            data[place % len(data)] ^= 1 << rng.randrange(8)
        elif fault == 2:
            del data[place : place + length]
        elif fault == 3:
            data[place:place] = rng.randbytes(length)
        elif fault == 4:
            data[place:place] = data[place : place + length] * rng.randint(1, 20)
        elif fault == 5:
            del data[place:]
        elif fault == 6:
            data[place : place + length] = bytes([rng.choice((0, 255, 127))]) * length
        else:  # a field of a header that asks for far too much
            number = rng.choice((2**31 - 1, 2**32 - 1, 2**20, 10**6))
            data[place : place + 4] = number.to_bytes(4, rng.choice(("little", "big")))
    return bytes(data)


def damage_text(data, rng):
    """Text with one to three faults: numbers, words and lines changed; sometimes its bytes."""
    if rng.random() < 0.2:
        return damage_bytes(data, rng)
    text = data.decode()
    for _ in range(rng.randint(1, 3)):
        fault = rng.randrange(5)
        numbers, words = list(re.finditer(r"-?\d+(\.\d+)?", text)), list(re.finditer(r"[a-z_]{3,}", text))
        if fault == 0 and numbers:
            found = rng.choice(numbers)
            value = rng.choice(
                (*HUGE[:6], -1, 0, 1.5, "nan", "inf", "true", '"x"', "[]", "{}", "1979-05-27", "1" * 5000)
            )
            text = f"{text[: found.start()]}{value}{text[found.end() :]}"
        elif fault == 1 and words:
            found = rng.choice(words)
            text = f"{text[: found.start()]}{damage_word(found[0], rng)}{text[found.end() :]}"
        else:
            lines = text.split("\n")
            place = rng.randrange(len(lines))
            if fault == 2:
                del lines[place]
            elif fault == 3:
                lines.insert(rng.randrange(len(lines) + 1), lines[place])
            else:
                lines.insert(
                    place, rng.choice(("[method]", "[method.bacs]", "method = 3", "a = " + "[" * 3000, "model = 1"))
                )
            text = "\n".join(lines)
    return text.encode("utf-8", "surrogatepass")


def damage_word(word, rng):
    """A word with one letter changed, lost or added, or another word."""
    if not word or rng.random() < 0.3:
        return rng.choice(WORDS)
    place, letter = rng.randrange(len(word)), rng.choice("abcdefgz019_/.")
    return rng.choice((word[:place] + letter + word[place + 1 :], word[:place] + word[place + 1 :], word + letter))


def damage_json(data, rng):
    """JSON with one or two fields removed, renamed, retyped or replaced; sometimes its bytes instead."""
    if rng.random() < 0.15:
        return damage_bytes(data, rng)
    table = json.loads(data)
    for _ in range(rng.randint(1, 2)):
        table = damage_value(table, rng)
    return json.dumps(table).encode()


def damage_value(table, rng):
    """A copy of a nested value with one fault somewhere in it."""
    table = copy.deepcopy(table)
    places = list(_places(table))
    if not places:
        return rng.choice(ODD)
    parent, key = rng.choice(places)
    value, fault = parent[key], rng.randrange(6)
    if fault == 0:
        del parent[key]
    elif fault == 1 and isinstance(parent, dict):
        parent[damage_word(key, rng)] = parent.pop(key)
    elif fault == 2:
        parent[key] = rng.choice((str(value), [value], {"a": value}, [], None))
    elif fault == 3:
        parent[key] = copy.deepcopy(rng.choice(ODD))
    elif fault == 4 and isinstance(value, list) and value:
        parent[key] = rng.choice((value * 2, value[:-1], value[::-1]))
    else:
        parent[key] = _changed(value, rng)
    return table


def _changed(value, rng):
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return rng.choice((*HUGE, -value, value + 1, value * 2, value / 3, value * 1e9, float("nan")))
    if isinstance(value, str):
        return damage_word(value, rng)
    return copy.deepcopy(rng.choice(ODD))


def _places(value):
    """(container, key) of everything in a nested value."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield value, key
            yield from _places(inner)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield value, number
            yield from _places(inner)
