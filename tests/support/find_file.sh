# Sourced by scripts that look for drivers.

# The first of these files that exists, or nothing; distributions put the architecture into drivers' names and folders.
find_file() {
  local file
  for file in "$@"; do
    if [ -f "$file" ]; then printf '%s' "$file"; return; fi
  done
}
