#!/bin/sh
# pytest 9.2.0: a plugin that lies in a namespace package beside a __main__.py warns in every suite.
#
# Guess before the run: pytest rewrites the modules of the distribution that has the entry point, `acme.plugin`
# and `acme`, and a suite that never uses it runs as before, also where warnings are errors.
# Seen: with no acme/__init__.py among the installed files pytest looks for packages one folder deeper, finds
# acme/__main__.py and marks the name `__main__`. That module is always imported, so every run in the
# environment warns "Module already imported so cannot be rewritten; __main__", and with `-W error` it ends
# before a test is collected. An __init__.py of no bytes in acme/ is the remedy.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
"$work/env/bin/python" -m pip install --quiet --disable-pip-version-check pytest==9.2.0 setuptools==80.9.0 wheel==0.45.1
mkdir -p "$work/plugin/acme/tools" "$work/suite"
echo 'print("the command of acme")' >"$work/plugin/acme/__main__.py"
: >"$work/plugin/acme/tools/__init__.py"
echo '"""A plugin that does nothing."""' >"$work/plugin/acme/tools/plugin.py"
cat >"$work/plugin/pyproject.toml" <<'TOML'
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "acme-plugin"
version = "1"
[project.entry-points.pytest11]
acme = "acme.tools.plugin"
[tool.setuptools]
packages = ["acme", "acme.tools"]
TOML
echo 'def test_it(): assert 1 + 1 == 2' >"$work/suite/test_it.py"
run() {
    "$work/env/bin/python" -m pip install --quiet --disable-pip-version-check --no-build-isolation --force-reinstall "$work/plugin"
    (cd "$work/suite" && "$work/env/bin/python" -m pytest -q -p no:cacheprovider "$@" 2>&1 | grep -oE '[0-9]+ passed|Module already imported so cannot be rewritten[:;] \w+' | sort -u)
}
{
    echo "no __init__:" && run
    echo "no __init__, -W error:" && run -W error
    : >"$work/plugin/acme/__init__.py"
    echo "with __init__, -W error:" && run -W error
} >"$work/seen"
cat "$work/seen"
cat >"$work/expected" <<'TEXT'
no __init__:
1 passed
Module already imported so cannot be rewritten; __main__
no __init__, -W error:
Module already imported so cannot be rewritten; __main__
with __init__, -W error:
1 passed
TEXT
diff "$work/expected" "$work/seen" && echo "as seen before"
