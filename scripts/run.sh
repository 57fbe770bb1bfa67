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
say "ViT-Tiny on a 224x224 input; its weights are random (seed 0), so the time and the checksum are" \
  "the result, not a label: no trained model comes with Vitrine yet"
exec "$vitrine" bench --arch vit_tiny_patch16_224 --batch 1 --seed 0
