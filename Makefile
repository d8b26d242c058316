# Every target is complete on its own: the first one you call makes the virtual environment.
# Without a GPU in sight it gets PyTorch's CPU build; TORCH=default leaves that to pip (tools/install_torch.py).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOWEST := $(VENV)-lowest
INSTALL := install --quiet --disable-pip-version-check
QUICK := -q -m "not slow and not needs"
export TORCH

.PHONY: help demo test test-all test-lowest test-pythons bench check docs format clean

help:
	@echo "make demo     train a small ensemble, shift its test images, compare every method (3 minutes)"
	@echo "make test     run the tests that need nothing but Python, and say what they leave out"
	@echo "make test-all install Ray, the vision libraries, Chromium and LaTeX, run every test"
	@echo "make test-lowest   run the tests with the oldest versions that pyproject.toml promises"
	@echo "make test-pythons  run the tests with each Python from 3.11 to 3.13 that is on this machine"
	@echo "make bench    measure speed and memory (fifty minutes on two quiet cores; RECORD=FILE.json keeps the figures)"
	@echo "make check    lint, format, types, import direction"
	@echo "make docs     build the documentation as a site, into site/"
	@echo "make format   let ruff rewrite what it can"
	@echo "make clean    remove the virtual environments and caches"

# torch goes first, so that no other requirement makes pip choose another build. The package is built with the hatchling
# of this environment, so that a changed pyproject.toml needs no network.
$(VENV)/.demo: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("bacs needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python tools/install_torch.py torch
	$(BIN)/pip $(INSTALL) -c constraints.txt hatchling editables
	$(BIN)/pip $(INSTALL) -c constraints.txt --no-build-isolation -e '.[report]'
	@touch $@

$(VENV)/.test: $(VENV)/.demo
	$(BIN)/pip $(INSTALL) -c constraints.txt --no-build-isolation -e '.[dev]'
	@touch $@

$(VENV)/.test-all: $(VENV)/.test
	$(PYTHON) tools/install_programs.py
	$(BIN)/python tools/install_torch.py torchvision
	$(BIN)/pip $(INSTALL) -c constraints.txt --no-build-isolation -e '.[dev,ray,vision]'
	@touch $@

demo: $(VENV)/.demo
	$(BIN)/bacs demo

test: $(VENV)/.test
	$(BIN)/python -m pytest $(QUICK)

test-all: $(VENV)/.test-all
	$(BIN)/python -m pytest -q

# The oldest versions of what users install; the tools of the tests are the newest that go with them. Shapes are not
# checked, since old compilers of torch stumble over the checks; and old libraries use what newer ones call deprecated.
test-lowest:
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/pip $(INSTALL) uv
	$(LOWEST)/bin/uv pip compile --quiet --python $(LOWEST)/bin/python --resolution lowest-direct pyproject.toml \
		--extra report --extra parquet --extra serve --output-file $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python tools/install_torch.py torch $(LOWEST)/constraints.txt
	$(LOWEST)/bin/pip $(INSTALL) -c $(LOWEST)/constraints.txt -e '.[dev]'
	$(LOWEST)/bin/python -m pytest $(QUICK) -o addopts=--import-mode=importlib \
		-W ignore::DeprecationWarning -W ignore::PendingDeprecationWarning

test-pythons:
	@for version in 3.11 3.12 3.13; do \
		if python$$version --version > /dev/null 2>&1; then \
			$(MAKE) test PYTHON=python$$version VENV=$(VENV)-$$version || exit 1; \
		else echo "python$$version is not on this machine: not tested"; fi; \
	done

# PARTS names some of the parts, and may hold --quick; see `python -m benchmarks --help`.
bench: $(VENV)/.test
	$(BIN)/python -m benchmarks $(PARTS) $(if $(RECORD),--record $(RECORD))

check: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyrefly check
	$(BIN)/python -m pytest -q tests/test_imports.py

# In an environment of its own, without torch: the API pages are read from the source. Groups need pip 25.1.
$(VENV)-docs/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)-docs
	$(VENV)-docs/bin/pip install --quiet --disable-pip-version-check 'pip>=25.1'
	$(VENV)-docs/bin/pip install --quiet --disable-pip-version-check -c constraints.txt --group docs
	@touch $@

docs: $(VENV)-docs/.ready
	NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/mkdocs build --strict

format: $(VENV)/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) $(VENV)-* site .pytest_cache .ruff_cache
