# Shared by the scripts in tools/ and .ci/, which source it: where things are, and a timer for their
# phases.

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
VENV="$ROOT/.venv"
BUILD="$ROOT/build"
PYTHON="$VENV/bin/python"
# Only a line of output or an error may stop these scripts, never a question.
export DEBIAN_FRONTEND=noninteractive PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

# phase NAME COMMAND...: runs the command, and prints how long it took (also where it failed).
phase() {
  local name="$1" start="$EPOCHREALTIME" status=0
  shift
  "$@" || status=$?
  local micros=$((${EPOCHREALTIME/[.,]/} - ${start/[.,]/}))
  printf '[%s] %s: %d.%d s%s\n' "$(basename "$0")" "$name" $((micros / 1000000)) \
    $((micros / 100000 % 10)) "$([[ $status -eq 0 ]] || echo " (failed, exit status $status)")"
  return "$status"
}
