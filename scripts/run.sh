#!/usr/bin/env bash
# Builds Vitrine and shows it at work, from a bare Debian or Ubuntu machine. With arguments it runs
# `vitrine` with them instead: scripts/run.sh inspect --arch vit_base_patch16_224
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/setup.sh

setup
build vitrine
vitrine=build/release/vitrine
if [ $# -gt 0 ]; then exec "$vitrine" "$@"; fi

say "the Vulkan devices of this machine"
"$vitrine" devices
suggest_newer_driver "$vitrine"
say "what the digit model that comes with Vitrine says of pictures in fonts that it has never seen"
"$vitrine" classify assets/samples --model assets/digits --top 1
heat=build/where_it_looked.png
say "and where it looked in one of them: $heat"
"$vitrine" attention assets/samples/3.png --model assets/digits --out "$heat"
