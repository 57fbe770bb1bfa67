#!/usr/bin/env bash
# How long the desktop app's frames keep the UI's thread while a model of about a second runs behind them.
# Prints the longest frame, and fails where it is over the limit.
#
#   bench/desktop_frames.sh [--build build/release] [--model vit_base_patch16_224] [--limit 100] [--csv FILE]
set -euo pipefail
cd "$(dirname "$0")/.."

build=build/release model=vit_base_patch16_224 limit=100 csv=
while [ $# -gt 1 ]; do
  case $1 in
    --build) build=$2 ;;
    --model) model=$2 ;;
    --limit) limit=$2 ;;
    --csv) csv=$2 ;;
    *) echo "desktop_frames.sh: unknown option $1 (--build, --model, --limit, --csv)" >&2; exit 2 ;;
  esac
  shift 2
done
[ $# = 0 ] || { echo "desktop_frames.sh: $1 needs a value" >&2; exit 2; }
[ -x "$build/vitrine-desktop" ] || { echo "desktop_frames.sh: $build/vitrine-desktop is not built" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ -n "$csv" ] || csv=$work/frames.csv

# Each picture is looked at for as long as the model takes; meanwhile the window is used.
cat >"$work/script.txt" <<SCRIPT
open-folder assets/samples
wait
model $model
wait
view attention
next
mouse 600 300
frames 20
layer 3
frames 10
wait
next
view grid
resize 1024 640
frames 10
wait
next
view features
resize 1280 800
wait
view rollout
next
wait
layer 0
wait
layer 1
wait
expect errors 0
SCRIPT
run=("$build/vitrine-desktop" --script "$work/script.txt" --frame-log "$csv")
if [ -z "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ]; then
  run=(xvfb-run -a -s "-screen 0 1600x1000x24 -nolisten tcp" "${run[@]}")
fi
"${run[@]}" >&2
awk -F, -v limit="$limit" '
  NR > 1 {
    if ($3 > longest) { longest = $3; line = $0 }
    if ($7 == 1 && $3 > busy) { busy = $3 }
    over += $3 > limit
    # Turns that drew nothing are in the log when they took time.
    if ($4 > 0) {
      if ($7 == 1 && drawn && $2 - drawn > gap) gap = $2 - drawn
      drawn = $7 == 1 ? $2 : 0
    }
  }
  END {
    split(line, part, ",")
    printf "%d frames, the longest %.1f ms (frame %d: interface %.1f, submitting %.1f, display %.1f)\n",
           NR - 1, longest, part[1], part[4], part[5], part[6]
    printf "while a model ran: the longest %.1f ms; over %s ms: %d; at most %.0f ms between two frames\n",
           busy, limit, over, gap * 1000
    exit over > 0
  }' "$csv"
