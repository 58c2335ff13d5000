# The README's commands, each from nothing: a machine with python3, make and root.
PYTHON ?= python3
BIN := .venv/bin

BROWSERS := chromium chromium-browser google-chrome google-chrome-stable chrome microsoft-edge

.PHONY: setup demo browser test slow bench pictures clean

setup: .venv/ready

.venv/ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "saliometer needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.12"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || { apt-get update && apt-get install -y python3-venv && $(PYTHON) -m venv --clear .venv; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps quantus==0.6.0  # it asks for an OpenCV that wants a display
	@touch $@

demo: setup
	$(BIN)/saliometer bench --per-bucket 10 --out runs/demo
	$(BIN)/saliometer audit --model efficientnet_lite0 --images photographs --size 112 --limit 4 --out runs/demo-audit

browser: setup  # the pages are tested in a real one: what is here, else Debian's, else Playwright's
	@for name in $(BROWSERS); do command -v $$name >/dev/null && exit 0; done; \
	echo "No browser is here to test the pages in; installing Chromium."; \
	{ test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq chromium; } >/dev/null 2>&1 \
	|| $(BIN)/playwright install chromium >/dev/null 2>&1 \
	|| echo "None could be installed: the pages are NOT tested in a browser (under CI that is a failure)."

test: setup browser
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -m "not slow" -n auto --dist loadfile --no-loadscope-reorder  # what a file prepares is prepared once; long files come first

slow: setup
	$(BIN)/pytest -m slow

bench: setup
	$(BIN)/python benchmarks/bench.py

pictures: demo browser
	$(BIN)/pytest tests/browser/test_pictures.py --pictures docs/images --pictures-of runs/demo

clean:
	rm -rf .venv build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
