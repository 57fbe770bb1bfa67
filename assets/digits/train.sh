#!/usr/bin/env bash
# Trains the model in this folder anew, on digits drawn with the fonts of 37 Debian packages, and draws the
# pictures in assets/samples with fonts that it has not seen.
#
#   assets/digits/train.sh WORK_FOLDER [vitrine]
#
# The packages are downloaded and unpacked in WORK_FOLDER; nothing is installed. The same fonts, driver and
# seed give the same model, byte for byte.
set -euo pipefail
[ $# -ge 1 ] || { echo "train.sh: found no folder to work in, expected: train.sh WORK_FOLDER [vitrine]" >&2; exit 2; }
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
work=$(cd "$1" && pwd)
vitrine=$(realpath "${2:-$root/build/release/vitrine}")

packages=(fonts-adf-gillius fonts-adf-mekanus fonts-atkinson-hyperlegible-ttf fonts-b612 fonts-breip fonts-cantarell
  fonts-comfortaa fonts-comic-neue fonts-crosextra-caladea fonts-crosextra-carlito fonts-dancingscript
  fonts-dejavu-core fonts-dkg-handwriting fonts-ebgaramond fonts-freefont-ttf fonts-georgewilliams fonts-go fonts-hack
  fonts-humor-sans fonts-inconsolata fonts-jura fonts-kaushanscript fonts-lato fonts-liberation fonts-linuxlibertine
  fonts-lobster fonts-ocr-b fonts-oldstandard fonts-open-sans fonts-quicksand fonts-rufscript fonts-sil-gentium-basic
  fonts-tomsontalks fonts-tuffy fonts-urw-base35 fonts-vollkorn fonts-yanone-kaffeesatz)

if [ ! -d "$work/fonts" ]; then
  mkdir -p "$work/packages"
  (cd "$work/packages" && apt-get download -qq "${packages[@]}")
  for package in "$work"/packages/*.deb; do dpkg -x "$package" "$work/unpacked"; done
  mv "$work/unpacked/usr/share/fonts" "$work/fonts"
fi
"$vitrine" digits --out "$work/data" --train 60000 --test 10000 --seed 1 --fonts "$work/fonts"
"$vitrine" train --data "$work/data" --config "$root/configs/digits.json" --out "$work/model"
"$vitrine" digits --out "$work/samples" --train 0 --test 40 --pictures 40 --size 112 --seed 3 --fonts "$work/fonts"
echo "the model is in $work/model, pictures are in $work/samples/pictures" >&2
