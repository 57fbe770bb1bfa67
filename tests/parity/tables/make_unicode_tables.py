#!/usr/bin/env python3
"""Writes model/text/unicode_tables.cpp and unicode_decompositions.cpp.

What tokenizers ask of Unicode, as the library `tokenizers` answers it.
Letters, numbers, white space and lower case are asked of the library itself, so that its version of Unicode is
the table's. Canonical decompositions are Python's, and so is what str.lower() looks at around a final sigma.
"""
import pathlib
import unicodedata

from tokenizers import Regex, normalizers, pre_tokenizers

CODES = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]


def ranges(codes):
    runs = []
    for code in codes:
        if runs and runs[-1][1] + 1 == code:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    return runs


def matching(pattern):
    split = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    return [c for c in CODES if split.pre_tokenize_str(chr(c))]


def lower_runs():
    lower = normalizers.Lowercase()
    runs = []
    for code in CODES:
        to = lower.normalize_str(chr(code))
        if to == chr(code) or len(to) > 1:
            assert len(to) == 1 or code == 0x130, hex(code)
            continue
        delta = ord(to) - code
        last = runs[-1] if runs else None
        if last and last[3] == delta and code - last[1] in (1, 2) and last[2] in (0, code - last[1]):
            last[1], last[2] = code, code - last[1]
        else:
            runs.append([code, code, 0, delta])
    return [[a, b, step or 1, delta] for a, b, step, delta in runs]


def classes():
    runs = []
    for code in CODES:
        number = unicodedata.combining(chr(code))
        if number and runs and runs[-1][1] + 1 == code and runs[-1][2] == number:
            runs[-1][1] = code
        elif number:
            runs.append([code, code, number])
    return runs


def decompositions():
    rows = []
    for code in CODES:
        text = unicodedata.decomposition(chr(code))
        if not text or text.startswith("<"):
            continue
        parts = [int(part, 16) for part in text.split()]
        both = "".join(map(chr, parts))
        composes = len(parts) == 2 and unicodedata.normalize("NFC", both) == chr(code)
        rows.append([code, parts[0], parts[1] if len(parts) > 1 else 0, int(composes)])
    return rows


def table(kind, name, rows):
    lines, line = [], "   "
    for row in rows:
        entry = " {" + ",".join(hex(v) if i != 3 and v > 9 else str(v) for i, v in enumerate(row)) + "},"
        if len(line) + len(entry) > 110:
            lines.append(line)
            line = "   "
        line += entry
    return f"constexpr {kind} {name}_rows[] = {{\n" + "\n".join([*lines, line]) + "\n};\n"


def write(file, tables):
    text = "// Made by tests/parity/tables/make_unicode_tables.py.\n"
    text += '#include "model/text/unicode_tables.h"\n\nnamespace vitrine::unicode {\nnamespace {\n\n// clang-format off\n'
    text += "\n".join(table(*entry) for entry in tables) + "// clang-format on\n\n}  // namespace\n\n"
    for kind, name, _ in tables:
        text += f"const std::span<const {kind}> {name} = {name}_rows;\n"
    text += "\n}  // namespace vitrine::unicode\n"
    (pathlib.Path(__file__).parents[3] / f"model/text/{file}.cpp").write_text(text)


def main():
    cased = [c for c in CODES if (chr(c) + "\u03a3").lower().endswith("\u03c2")]
    held = set(cased)
    ignored = [c for c in CODES if c not in held and ("a" + chr(c) + "\u03a3").lower().endswith("\u03c2")]
    write("unicode_tables", [
        ("CodeRange", "letter", ranges(matching(r"\p{L}"))),
        ("CodeRange", "number", ranges(matching(r"\p{N}"))),
        ("CodeRange", "space", ranges(matching(r"\s"))),
        ("CodeRange", "cased", ranges(cased)),
        ("CodeRange", "case_ignorable", ranges(ignored)),
        ("LowerRun", "small_letter", lower_runs()),
        ("CombiningRun", "combining", classes()),
    ])
    write("unicode_decompositions", [("Decomposition", "decomposition", decompositions())])


main()
