#!/usr/bin/env bash
# Builds Vitrine and runs all its tests, from a bare Debian or Ubuntu machine. CTest has the last
# word, and its exit status is this script's. Arguments go to ctest: scripts/test.sh -R layer_norm
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/setup.sh

setup true
build all
say "testing"
exec ctest --preset release "$@"
