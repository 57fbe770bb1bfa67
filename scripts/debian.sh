# Debian's packages and their sources, for scripts that source this. They have a function fail that ends them with a sentence.

# require_packages WHO true|false PACKAGE...: installs what is missing, as root, or fails with what is missing.
require_packages() {
  local who=$1 install=$2 package status missing=()
  shift 2
  command -v dpkg-query >/dev/null || fail "Debian's packages are needed, and this isn't Debian"
  for package in "$@"; do
    status=$(dpkg-query -W -f '${db:Status-Status} ' "$package" 2>/dev/null) || true
    case " $status" in *' installed '*) ;; *) missing+=("$package") ;; esac
  done
  if [ ${#missing[@]} = 0 ]; then return; fi
  $install || fail "packages are missing; as root, run: $who --install, or apt-get install ${missing[*]}"
  [ "$(id -u)" = 0 ] || fail "--install needs to run as root, to install ${missing[*]}"
  echo "$who: installing ${missing[*]}" >&2
  export DEBIAN_FRONTEND=noninteractive
  apt-get -qq update
  apt-get -qq -o Dpkg::Use-Pty=0 install -y --no-install-recommends "${missing[@]}" >/dev/null </dev/null
}

# download_sources SUITE SOURCE...: the tarballs of source packages into this folder, from the mirror that this machine's apt has
# Debian's SUITE from. apt's own sources and lists stay as they are.
download_sources() {
  local suite=$1 mirror from
  shift
  mirror=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' | sed -n "s/^$suite //p" | head -n 1)
  [ -n "$mirror" ] || fail "apt's sources name no mirror of Debian's $suite, whose source packages are needed: $*"
  mkdir -p lists/partial cache/archives/partial
  echo "deb-src $mirror $suite main" >sources.list
  # As root apt would read these files as another user, who may not enter this folder.
  from=(-qq -o "Dir::Etc::sourcelist=$PWD/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::lists=$PWD/lists"
    -o "Dir::Cache=$PWD/cache" -o APT::Sandbox::User=root -o Acquire::Retries=3)
  apt-get "${from[@]}" update
  apt-get "${from[@]}" source --download-only --tar-only "${@/%//$suite}" >download.log 2>&1 \
    || { cat download.log >&2; fail "apt-get could not download the sources of $*"; }
}

# unpack_source NAME: the tarball of a source package's own, which lies in this folder, into the folder NAME.
unpack_source() {
  local archive=("$1"_*.orig.tar.[xg]z)
  mkdir -p "$1"
  tar -xf "${archive[0]}" -C "$1" --strip-components=1
}

# build_source NAME INTO OPTION...: what the CMake project in the folder NAME builds with these options of CMake goes to INTO.
build_source() {
  local name=$1 into=$2
  shift 2
  {
    cmake -S "$name" -B "$name/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$into" \
      -DCMAKE_INSTALL_LIBDIR:PATH="$into/lib" -DBUILD_SHARED_LIBS=OFF "$@"
    ninja -C "$name/build" install
  } >"$name.log" 2>&1 || { tail -n 30 "$name.log" >&2; fail "$name's build failed (its last lines are above)"; }
}

# keep_built BUILT FOLDER: what was built in a temporary folder, whole or not at all, to where it is kept.
keep_built() {
  grep -rlF "$1" "$1/lib" | xargs --no-run-if-empty sed -i "s|$1|$2|g"
  mkdir -p "$(dirname "$2")"
  cp -a "$1" "$2.$$"
  mv "$2.$$" "$2"
}
