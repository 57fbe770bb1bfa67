# For the scripts beside it: what Wine keeps of a user in a folder of its own.

# make_prefix FOLDER: where Wine's programs that are started from now on live, with this machine's fonts, as Windows has some.
make_prefix() {
  # Wine says much of its own.
  export WINEPREFIX=$1 WINEDEBUG=${WINEDEBUG:--all}
  wineboot --init >/dev/null 2>&1 || true
  mkdir -p "$WINEPREFIX/drive_c/windows/Fonts"
  find /usr/share/fonts -name '*.ttf' -exec cp {} "$WINEPREFIX/drive_c/windows/Fonts" \;
}
