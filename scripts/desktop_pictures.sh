#!/usr/bin/env bash
# Makes the pictures of the desktop app in docs/images anew, without a screen: the real app, driven by a script
# on Xvfb. To be run, and looked at, after what it shows has changed.
#
#   scripts/desktop_pictures.sh [BUILD]      an app that is built already: build/dev
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/setup.sh

built=${1:-build/release}
if [ $# = 0 ]; then
  setup true
  build vitrine-desktop
  build vitrine
fi
command -v xvfb-run >/dev/null || fail "xvfb-run is missing (Debian: apt-get install xvfb xauth)"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A 3 as somebody draws it.
three="0.30 0.25 0.35 0.20 0.42 0.16 0.52 0.15 0.62 0.18 0.68 0.25 0.68 0.33 0.63 0.40 0.55 0.44 0.46 0.46 0.57 0.48
  0.66 0.53 0.71 0.61 0.71 0.70 0.65 0.79 0.55 0.84 0.44 0.85 0.35 0.82 0.29 0.76"
# Trainings of the command line, side by side.
say "training three models for their curves"
"$built/vitrine" digits --characters ABCDEFGHIJ --format folders --out "$work/letters" --train 1000 --test 300 >&2
learn() {
  "$built/vitrine" train --data "$work/letters" --validate-every epoch --no-flip --no-resized-crop --out "$work/$1" \
    --model assets/digits "${@:2}" >&2
}
learn head-alone --train head
learn everything
learn faster --lr 0.002

cat >"$work/script.txt" <<SCRIPT
open-folder assets/samples
wait
next
next
next
view attention
wait
shot $work/desktop.png
view grid
layer 2
wait
shot $work/desktop_heads.png
view rollout
patch-grid on
wait
shot $work/desktop_rollout.png
patch-grid off
view structure
wait
shot $work/desktop_structure.png
view profile
wait
shot $work/desktop_profile.png
view device
wait
shot $work/desktop_device.png
view draw
stroke $(echo $three)
wait
shot $work/desktop_draw.png
view train
theme light
train digits
train-steps 120
shot $work/desktop_train.png
theme dark
run $work/head-alone
run $work/everything
run $work/faster
until run-step >= 320
frames 20
mouse accuracy 0.72 0.5
frames 5
shot $work/desktop_runs.png
mouse 2 2
view attention
help on
frames 5
shot $work/desktop_keys.png
expect errors 0
SCRIPT
say "driving the app"
xvfb-run -a -s "-screen 0 1600x1000x24 -nolisten tcp" "$built/vitrine-desktop" --size 1280x800 \
  --script "$work/script.txt" >&2
mkdir -p docs/images
mv "$work"/*.png docs/images/
say "written; look at them: $(echo docs/images/desktop*.png)"
