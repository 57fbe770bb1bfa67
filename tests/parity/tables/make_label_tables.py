#!/usr/bin/env python3
"""Writes model/labels/imagenet_words_*.cpp and imagenet_sets.cpp, and labels/imagenet.json to test them with.

What ImageNet's classes are called, and which of them a classifier of so many classes has in which order: by timm's own
data and rule (`infer_imagenet_subset`, `ImageNetInfo`). Needs timm alone.
"""
import json
import pathlib
import zlib

import timm
from timm.data import ImageNetInfo, infer_imagenet_subset
from timm.data import imagenet_info

HERE = pathlib.Path(__file__).parent.parent
ROOM = HERE.parents[1] / "model" / "labels"
COUNTS = sorted(imagenet_info._NUM_CLASSES_TO_SUBSET)
TITLES = {1000: "ImageNet-1k", 11221: "ImageNet-21k (MIIL's)", 11821: "ImageNet-12k", 21841: "ImageNet-22k",
          21842: "ImageNet-22k (Microsoft's)", 21843: "ImageNet-21k (Google's)"}
# How timm's tags call what a model was trained on last.
TAGS = {1000: "in1k", 11221: "in21k", 11821: "in12k", 21841: "in22k", 21842: "in22k", 21843: "in21k"}
HEAD = f"""// Made by tests/parity/tables/make_label_tables.py from the data of timm {timm.__version__} (Apache License 2.0):
// ImageNet's synsets in the words of WordNet 3.0, copyright 2006 by Princeton University (LICENCES.txt).
#include "model/labels/imagenet_tables.h"

namespace vitrine::imagenet {{
"""
FOOT = "\n}  // namespace vitrine::imagenet\n"
LINE, LINES = 112, 560


def check_tags():
    """The tags that timm's own models have say what TAGS says."""
    for name, config in timm.models._registry._model_pretrained_cfgs.items():
        sets = [part for part in name.partition(".")[2].split("_") if part in set(TAGS.values())]
        if sets and config.num_classes in TAGS:
            assert sets[-1] == TAGS[config.num_classes], name


def write_words(texts):
    lines, line = [], ""
    for text in texts:
        assert text.isascii() and text.isprintable() and not set(text) & set('"\\?'), text
        entry = text + "\\n"
        if line and len(line) + len(entry) > LINE:
            lines.append(line)
            line = ""
        line += entry
    lines.append(line)
    files = [lines[i:i + LINES] for i in range(0, len(lines), LINES)]
    for old in ROOM.glob("imagenet_words_*.cpp"):
        old.unlink()
    for number, part in enumerate(files):
        assert sum(len(line) - line.count("\\n") for line in part) < 65000  # more than compilers promise to take
        body = "\n".join(f'    "{line}"' for line in part)
        (ROOM / f"imagenet_words_{number}.cpp").write_text(
            f"{HEAD}\nusing namespace std::string_view_literals;\n\nextern const std::string_view words_{number};\n\n// clang-format off\n"
            f"const std::string_view words_{number} =\n{body}sv;\n// clang-format on\n{FOOT}")
    return len(files)


def bits(name, held):
    words = [sum(1 << b for b, in_it in enumerate(held[i:i + 64]) if in_it) for i in range(0, len(held), 64)]
    rows = [words[i:i + 5] for i in range(0, len(words), 5)]
    body = "\n".join("    " + " ".join(f"0x{word:016x}," for word in row) for row in rows)
    return f"constexpr uint64_t {name}[] = {{\n{body}\n}};\n"


def write_sets(universe, sets, files):
    first = sets[1000]
    tables, rows = "", ""
    for count in COUNTS:
        synsets, begin = sets[count], "{}"
        if synsets != sorted(synsets):  # ImageNet-1k's, then the others
            assert synsets == first + sorted(set(synsets) - set(first))
            begin = "of_1000"
        held = set(synsets)
        tables += "\n" + bits(f"of_{count}", [synset in held for synset in universe])
        rows += f'    {{{count}, "{TITLES[count]}", "{TAGS[count]}", of_{count}, {begin}}},\n'
    words = ", ".join(f"&words_{n}" for n in range(files))
    declared = "".join(f"extern const std::string_view words_{n};\n" for n in range(files))
    (ROOM / "imagenet_sets.cpp").write_text(
        f"{HEAD}\n{declared}\nnamespace {{\n\n// clang-format off\n"
        f"constexpr const std::string_view* words_of_all[] = {{{words}}};\n{tables}\nconstexpr Set all_sets[] = {{\n"
        f"{rows}}};\n// clang-format on\n\n}}  // namespace\n\n"
        "const std::span<const std::string_view* const> words = words_of_all;\n"
        f"const std::span<const Set> sets = all_sets;\n{FOOT}")


def write_fixture(infos):
    cases = []
    for count, info in infos.items():
        names = info.label_descriptions()
        picked = sorted({0, 1, 7, 281, 511, 512, 999, count // 3, count // 2, 7 * count // 9, count - 2, count - 1})
        cases.append({"classes": count, "crc32": zlib.crc32("".join(name + "\n" for name in names).encode()),
                      "names": {str(i): info.index_to_description(i) for i in picked}})
    (HERE / "labels").mkdir(exist_ok=True)
    (HERE / "labels" / "imagenet.json").write_text(
        json.dumps({"timm": timm.__version__, "sets": cases}, indent=1) + "\n")


def main():
    check_tags()
    infos = {count: ImageNetInfo(infer_imagenet_subset({"num_classes": count})) for count in COUNTS}
    sets = {count: info.label_names() for count, info in infos.items()}
    assert all(len(synsets) == count for count, synsets in sets.items())
    universe = sorted(set().union(*sets.values()))
    words = ImageNetInfo()
    files = write_words([words.label_name_to_description(synset) for synset in universe])
    write_sets(universe, sets, files)
    write_fixture(infos)


main()
