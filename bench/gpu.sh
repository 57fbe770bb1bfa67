#!/usr/bin/env bash
# Everything that a real GPU is needed for, in one go, from a bare machine: build, tests under
# validation, benchmarks. What was measured goes into a folder, a summary to stdout.
#
#   bench/gpu.sh [--packages FOLDER] [--out FOLDER] [--minutes N] [--skip tests|bench|startup|compare]...
#
# --packages: a folder of .deb files for machines that can't install; they are unpacked beside the
#   build and used from there. Without it scripts/setup.sh installs what is missing.
# --minutes: how long all of it may take (default 9); what doesn't fit is cut off, what was done stays.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/setup.sh

packages='' out=out/gpu minutes=9 skip=' '
while [ $# -gt 0 ]; do
  case $1 in
    --packages) packages=$2; shift 2 ;;
    --out) out=$2; shift 2 ;;
    --minutes) minutes=$2; shift 2 ;;
    --skip) skip+="$2 "; shift 2 ;;
    *) say "gpu.sh: unknown option $1 (--packages, --out, --minutes, --skip)"; exit 2 ;;
  esac
done
build_folder=build/gpu
mkdir -p "$out" "$build_folder"
out=$(cd "$out" && pwd)

unpack() {
  local prefix=$PWD/$build_folder/packages file library
  for file in "$packages"/*.deb; do
    [ -f "$prefix/.${file##*/}" ] && continue
    mkdir -p "$prefix"
    dpkg -x "$file" "$prefix" && touch "$prefix/.${file##*/}"
  done
  library=$prefix/usr/lib/$(uname -m)-linux-gnu
  export PATH=$prefix/usr/bin:$PATH CMAKE_PREFIX_PATH=$prefix/usr LD_LIBRARY_PATH=$library:${LD_LIBRARY_PATH:-}
  export CPATH=$prefix/usr/include VK_ADD_LAYER_PATH=$prefix/usr/share/vulkan/explicit_layer.d
}

# step NAME SECONDS COMMAND...: what it prints goes to $out/NAME.log, how it ended into the summary.
# Never past the end of all the time there is.
summary='' failures=0
step() {
  local name=$1 limit=$2 start=$SECONDS status=0
  shift 2
  case $skip in *" $name "*) return ;; esac
  if [ $((minutes * 60 - SECONDS)) -lt "$limit" ]; then limit=$((minutes * 60 - SECONDS)); fi
  if [ "$limit" -le 0 ]; then
    status=124
  else
    timeout --kill-after=5 "$limit" "$@" >"$out/$name.log" 2>&1 </dev/null || status=$?
  fi
  case $status in
    0) summary+="$name: done in $((SECONDS - start)) s"$'\n' ;;
    124 | 137) summary+="$name: out of time after $((SECONDS - start)) s"$'\n' ;;
    *) summary+="$name: exit status $status after $((SECONDS - start)) s (see $name.log)"$'\n' ;;
  esac
  if [ "$status" != 0 ]; then failures=$((failures + 1)); fi
  return "$status"
}

if [ -n "$packages" ]; then unpack; else setup true; fi
export VITRINE_REQUIRE_DEVICE=1

say "building"
step configure 60 cmake -G Ninja -S . -B "$build_folder" -DCMAKE_BUILD_TYPE=Release -DVITRINE_BUILD_BENCH=ON \
  && step build 900 ninja -C "$build_folder" || { cat "$out"/{configure,build}.log 2>/dev/null | tail -n 40; exit 1; }
vitrine=$build_folder/vitrine
step devices 30 "$vitrine" devices
cat "$out/devices.log"
step doctor 60 "$vitrine" doctor --compile-only

say "testing"
step tests 300 ctest --test-dir "$build_folder" --output-on-failure -j 4 --timeout 120 --output-junit "$out/tests.xml"

say "measuring"
measure() {
  local arch
  for arch in vit_tiny_patch16_224 vit_base_patch16_224 vit_large_patch16_224; do
    "$vitrine" bench --arch "$arch" --batch 1,8,32 --dtype f32,f16 --json || return
  done
}
export -f measure
export vitrine
step bench 120 bash -c 'measure'
grep '^{' "$out/bench.log" >"$out/bench.json"
step startup 60 bench/startup.py --vitrine "$vitrine" --rounds 3 --json "$out/startup.json"
# The CPU's systems are no rivals of a GPU's, and would take the time away.
step compare 120 bench/compare.py --vitrine "$vitrine" --ggml "$build_folder/bench/ggml_vit" --skip=-cpu --best \
  --batch 1,8 --dtype f32,f16 --json "$out/compare.json" --table "$out/compare.md"

echo
[ -s "$out/bench.json" ] && bench/table.py "$out/bench.json"
[ -f "$out/startup.log" ] && grep -v '^startup:' "$out/startup.log"
[ -f "$out/compare.md" ] && cat "$out/compare.md"
[ -f "$out/tests.log" ] && sed -n '/tests passed/,$p' "$out/tests.log"
echo
printf '%s' "$summary"
exit $((failures > 0))
