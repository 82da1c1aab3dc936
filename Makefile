# make app    install into .venv (once) and open the app       make test   every test but the slow
# make class  the app for a class of 30 on the network
# make check  lint, types, import rules, fast tests            make long   the slow tests
# make bench  the measurements of benchmarks/                  make pictures  README's pictures
# make docs   the site of docs/, into build/docs
# make arithmetics   the engine's tests under three arithmetics, one thread and two

SHELL := /bin/bash
VENV ?= .venv
# The first working Python of a version we support; PYTHON=python3.12 make ... chooses another.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null \
	&& { echo $$p; break; }; done)
PORT ?= 8866
ARGS ?=
BIN := $(VENV)/bin
# How many workers: tests/conftest.py. ARGS="-n 0" runs one test after another. Bytecode is kept in
# any case: workers, servers and kernels are some hundred processes that start from it.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -n auto --dist loadfile
STAMP := $(VENV)/.installed
APP_STAMP := $(VENV)/.installed-app
DOCS_STAMP := $(VENV)/.installed-docs

.PHONY: app class test check lint arithmetics bench long pictures docs install clean
.DEFAULT_GOAL := app

install: $(STAMP)

# The page alone needs no linters and no browser; what is installed for the tests holds the page.
$(STAMP): EXTRA := all
$(APP_STAMP): EXTRA := app
$(DOCS_STAMP): EXTRA := docs

# A stamp is written last: an interrupted install is taken up again by the next run.
$(STAMP) $(APP_STAMP) $(DOCS_STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11, 3.12 or 3.13 is needed; none was found. Install one, or name it: make PYTHON=/path/to/python3.11"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[$(EXTRA)]'
	@touch $@ $(if $(filter all,$(EXTRA)),$(APP_STAMP))

app: $(APP_STAMP)
	$(BIN)/margin-explorer serve --port $(PORT) $(ARGS)

class: $(APP_STAMP)
	$(BIN)/margin-explorer serve --class 30 --host 0.0.0.0 --port $(PORT) $(ARGS)

test: $(STAMP)
	chromium=$$(scripts/chromium.sh $(BIN)/python) && \
	CHROMIUM="$$chromium" $(PYTEST) -m "not slow" $(ARGS)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint
	$(PYTEST) -m "not slow and not browser" $(ARGS)

arithmetics: $(STAMP)
	scripts/arithmetics.sh $(BIN)/python $(ARGS)

long: $(STAMP) $(DOCS_STAMP)
	chromium=$$(scripts/chromium.sh $(BIN)/python) && \
	CHROMIUM="$$chromium" $(PYTEST) -n 2 -m slow $(ARGS)

# Each file of benchmarks/ whose name starts with bench_ is a script that prints one table.
bench: $(STAMP)
	chromium=$$(scripts/chromium.sh $(BIN)/python) && \
	for script in benchmarks/bench_*.py; do \
	echo "== $$script"; CHROMIUM="$$chromium" $(BIN)/python $$script $(ARGS) || exit 1; done

pictures: $(STAMP)
	chromium=$$(scripts/chromium.sh $(BIN)/python) && \
	CHROMIUM="$$chromium" $(BIN)/python scripts/pictures.py $(ARGS) && \
	CHROMIUM="$$chromium" $(BIN)/python scripts/lessons.py

docs: $(DOCS_STAMP)
	rm -rf build/docs
	$(BIN)/python -m sphinx -W --keep-going -q docs build/docs $(ARGS)
	$(BIN)/python scripts/playing.py build/docs
	@echo "the site: build/docs/index.html"

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
