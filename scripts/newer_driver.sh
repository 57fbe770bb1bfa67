#!/usr/bin/env bash
# Mesa from Debian's own backports: what `setup.sh --newer-driver` adds to a system and --undo-newer-driver takes
# away again. setup.sh sources it, for the packages' names and for its ways of speaking and becoming root.

newer_driver_source=/etc/apt/sources.list.d/vitrine-newer-driver.sources
newer_driver_pin=/etc/apt/preferences.d/vitrine-newer-driver

# Debian's name for this release; nothing elsewhere. Ubuntu, for one, puts no Mesa into its backports.
debian_release() {
  if [ "$(os_release ID)" = debian ]; then os_release VERSION_CODENAME; fi
}

# URI|SIGNED-BY of the mirror that RELEASE comes from. apt reads its sources itself, in all of their formats; others
# than Debian name their releases "trixie main", too, but call themselves something else. What an entry
# doesn't say, apt leaves as it is written here.
debian_mirror() {
  apt-get indextargets --format '$(REPO_URI)|$(SIGNED_BY)' 'Created-By: Packages' 'Origin: Debian' \
    "Codename: $1" 'Component: main' | sed -n '1{s/|\$(SIGNED_BY)$/|/;p}'
}

# The versions of the driver in apt's lists, newest first; further options of apt-cache may follow.
driver_versions() { apt-cache "$@" madison "$driver_package" | sed -nE 's/^[^|]*\| *([^ |]+) .*/\1/p'; }
# The distribution's own.
own_driver_version() { driver_versions | sed '/~bpo/d' | sed -n 1p; }
installed_driver_version() { dpkg-query -W -f '${Version}\n' "$driver_package" 2>/dev/null | sed -n '1{/./p}' || true; }

# What the program at $1 advises who uses Mesa's software driver, if it would use that and has something to say.
software_driver_advice() {
  "$1" devices --json 2>/dev/null |
    sed -nE '/"driver":"llvmpipe".*"chosen":true/s/.*"advice":\["([^"]*)".*/\1/p' || true
}

# One line, where all of it is true: the program at $1 would be faster with a newer driver, and there may be one.
suggest_newer_driver() {
  local advice
  advice=$(software_driver_advice "$1")
  if [ -z "$advice" ] || [ -z "$(debian_release)" ] || ! is_installed "$driver_package"; then return; fi
  say "$advice; to have it from Debian's backports: scripts/setup.sh --newer-driver"
}

# Only who runs on the software driver is known to gain something.
require_software_driver() {
  local vitrine=$1/build/release/vitrine
  if [ ! -x "$vitrine" ]; then
    ! compgen -G '/dev/dri/renderD*' >/dev/null \
      || fail "this machine has a GPU, which may not need it: run scripts/run.sh first, which says what is used"
  elif "$vitrine" devices >/dev/null 2>&1; then
    [ -n "$(software_driver_advice "$vitrine")" ] \
      || fail "nothing is known to be gained: the device that would be used (vitrine devices) isn't Mesa's" \
        "software driver, or its driver is new enough"
  fi
}

# The newest driver in the backports, without touching the system: apt reads the sources in folder $1 and
# keeps its lists there.
newest_driver_in() {
  local options=(-o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$1/sources" -o "Dir::State::Lists=$1/lists"
    -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=)
  LC_ALL=C apt-get -qq -o Acquire::Retries=3 "${options[@]}" update >"$1/log" 2>&1 || return 1
  driver_versions "${options[@]}" | sed -n 1p
}

# What else apt would install. A failure here is left to the installation itself.
say_what_comes_with() {
  local others
  others=$(LC_ALL=C apt-get -s --no-install-recommends install "$@" |
    sed -nE "/^Inst $driver_package[: ]/d; s/^Inst ([^ ]+) .*/\1/p" | xargs)
  if [ -n "$others" ]; then say "installing what it needs, too: $others"; fi
}

# What apt would take away as needed by nobody, one a line.
needless() { LC_ALL=C apt-get -s autoremove | sed -nE 's/^Remv ([^ ]+) .*/\1/p' | sort; }

newer_driver() {
  local tree=$1 release installed own mirror newest instances=() automatic=() adds_source=true
  without_root="as root, run: scripts/setup.sh --newer-driver"
  release=$(debian_release)
  [ -n "$release" ] || fail "--newer-driver takes Mesa from Debian's backports, and this is $(os_release PRETTY_NAME)"
  installed=$(installed_driver_version)
  case $installed in *~bpo*)
    say "nothing to do: $driver_package $installed is installed, which is from Debian's backports"
    return ;;
  esac
  [ -n "$installed" ] || ! has_vulkan_driver || fail "this machine's Vulkan driver isn't Debian's Mesa: it is left as it is"
  require_software_driver "$tree"
  can_become_root || fail "this needs root, and there is no sudo: $without_root"

  mirror=$(debian_mirror "$release")
  if [ -z "$mirror" ]; then
    run_apt update
    mirror=$(debian_mirror "$release")
  fi
  [ -n "$mirror" ] || fail "apt's sources name no mirror of Debian's $release"
  require_packages "${build_packages[@]}"
  own=$(own_driver_version)

  # Not local: the trap runs when this function's variables are gone.
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  # As root apt reads and writes as a user of its own.
  chmod 755 "$work"
  mkdir -p "$work/sources" "$work/lists/partial"
  {
    echo "# Written by Vitrine's scripts/setup.sh --newer-driver; --undo-newer-driver removes it."
    printf '%s\n' "Types: deb" "URIs: ${mirror%%|*}" "Suites: $release-backports" "Components: main"
    [ -z "${mirror#*|}" ] || echo "Signed-By: ${mirror#*|}"
  } >"$work/sources/backports.sources"
  # Backports have a priority of 100, below the distribution's own: of them comes what is pinned, and nothing else.
  printf '%s\n' "# Written by Vitrine's scripts/setup.sh --newer-driver; --undo-newer-driver removes it." \
    "Package: $driver_package" "Pin: release n=$release-backports" "Pin-Priority: 600" >"$work/pin"
  newest=$(newest_driver_in "$work") \
    || fail "apt-get can't read $release-backports of ${mirror%%|*}: $(sed -n '/^E: /{s///;p;q}' "$work/log")"
  if [ -z "$newest" ] || ! dpkg --compare-versions "$newest" gt "$own"; then
    fail "$release-backports of ${mirror%%|*} has no newer $driver_package than $own"
  fi
  # Where apt knows the backports already, two entries of the same would make it complain.
  if [ ! -f "$newer_driver_source" ] && [ -n "$(apt-get indextargets --format '$(REPO_URI)' \
    'Created-By: Packages' "Release: $release-backports" 'Component: main')" ]; then
    adds_source=false
  fi

  if $adds_source; then say "adding $newer_driver_source: $release-backports of ${mirror%%|*}"; fi
  say "adding $newer_driver_pin: nothing but $driver_package comes from there"
  say "installing $driver_package $newest${installed:+ over $installed}"
  say "to undo all of it: scripts/setup.sh --undo-newer-driver"
  mapfile -t instances < <(installed_instances "$driver_package")
  if [ -z "$installed" ]; then instances=("$driver_package"); fi
  mapfile -t automatic < <(apt-mark showauto "$driver_package")
  if $adds_source; then as_root install -m 644 "$work/sources/backports.sources" "$newer_driver_source"; fi
  as_root install -m 644 "$work/pin" "$newer_driver_pin"
  # The driver of another architecture, where there is one, has to be of the same version.
  if ! run_apt update || ! say_what_comes_with "${instances[@]/%/=$newest}" \
    || ! install_quietly --no-remove "${instances[@]/%/=$newest}"; then
    as_root rm -f "$newer_driver_source" "$newer_driver_pin"
    fail "$driver_package $newest could not be installed (apt-get's last lines are above); both files are removed again"
  fi
  if [ ${#automatic[@]} -gt 0 ]; then as_root apt-mark -qq auto "${automatic[@]}" >/dev/null; fi
  say "done: $driver_package $(installed_driver_version)"
}

undo_newer_driver() {
  local installed own instances=() automatic=() others=() needless_before file
  without_root="as root, run: scripts/setup.sh --undo-newer-driver"
  if [ ! -f "$newer_driver_source" ] && [ ! -f "$newer_driver_pin" ]; then
    say "nothing to undo: there is no $newer_driver_pin"
    return
  fi
  can_become_root || fail "this needs root, and there is no sudo: $without_root"
  installed=$(installed_driver_version)
  case $installed in *~bpo*)
    run_apt update
    own=$(own_driver_version)
    [ -n "$own" ] || fail "apt knows no $driver_package of the distribution's own to put in place of $installed"
    say "installing $driver_package $own over $installed"
    mapfile -t instances < <(installed_instances "$driver_package")
    mapfile -t automatic < <(apt-mark showauto "$driver_package")
    needless_before=$(needless)
    install_quietly --no-remove --allow-downgrades "${instances[@]/%/=$own}" \
      || fail "$driver_package $own could not be installed (apt-get's last lines are above); nothing is undone yet"
    if [ ${#automatic[@]} -gt 0 ]; then as_root apt-mark -qq auto "${automatic[@]}" >/dev/null; fi
    # What only the newer driver needed; what nobody needed before is none of our business.
    mapfile -t others < <(comm -13 <(echo "$needless_before") <(needless))
    if [ ${#others[@]} -gt 0 ]; then
      say "removing what only it needed: ${others[*]}"
      run_apt remove -y "${others[@]}" >/dev/null
    fi ;;
  esac
  for file in "$newer_driver_source" "$newer_driver_pin"; do
    if [ -f "$file" ]; then say "removing $file"; fi
  done
  as_root rm -f "$newer_driver_source" "$newer_driver_pin"
  say "done: $driver_package $(installed_driver_version)"
}
