# Installs the clients that the tests use, into build/: what is there already is left alone.
source tools/dev/common.sh

# Python's own client of the hub, whose cache tests/e2e/models_test.py shares, and clients of the server.
packages=build/python-packages
clients=(huggingface_hub openai anthropic ollama langchain_openai llm playwright)
if ! (cd "$packages" && ls -d "${clients[@]}") >/dev/null 2>&1; then
  quietly python -m pip install --quiet --disable-pip-version-check --upgrade --target "$packages" \
    'huggingface_hub>=1.0' 'openai>=1.60' 'anthropic>=0.50' 'ollama>=0.5' langchain-openai llm playwright ||
    die "pip could not install ${clients[*]} for the tests"
fi
if [[ ! -d build/schemathesis/schemathesis ]]; then
  quietly python -m pip install --quiet --disable-pip-version-check --target build/schemathesis schemathesis ||
    die "pip could not install schemathesis for the tests"
fi
node_packages=build/node-packages
if [[ ! -d $node_packages/node_modules/openai ]]; then
  mkdir -p "$node_packages"
  quietly npm install --silent --no-audit --no-fund --prefix "$node_packages" openai ||
    die "npm could not install openai for the tests"
fi
