# Every target makes .venv and installs into it when needed. PYTHON chooses the interpreter: make test PYTHON=python3.12
# PROCESSES chooses how many the tests run in, each of which needs a core and 2 GB.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EXTRAS := data,chinese,finetune,tuner,beam,garden,jax,serving,tflite,onnx,report,dev
INSTALLED := $(VENV)/installed
PROCESSES ?= 2
# A module's tests share fixtures, so they stay together.
PYTEST := $(BIN)/python -m pytest -q --numprocesses $(PROCESSES) --dist loadscope

.DEFAULT_GOAL := help
.PHONY: help install demo test test-all lint bench clean

help:
	@echo "make demo      from raw text to an answering model, in demo-output/ (about 10 minutes on two cores)"
	@echo "make test      the tests a contributor needs"
	@echo "make test-all  these, the slow ones, and those on the data in ../shared (or KERAS_BERT_SHARED)"
	@echo "make lint      ruff and mypy"
	@echo "make bench     side by side with peers, one table"
	@echo "make install   .venv with the package and all it needs (the others do it when needed)"
	@echo "make clean     removes .venv and what was built"

install: $(INSTALLED)

$(INSTALLED): setup.py constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || \
		{ echo "Python 3.11, 3.12 or 3.13 is needed, and $(PYTHON) is `$(PYTHON) --version 2>&1`; try: make PYTHON=python3.11"; exit 1; }
	@echo "Installing into $(VENV) with `$(PYTHON) --version` (about 3 minutes, once) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[$(EXTRAS)]"
	@touch $@

demo: $(INSTALLED)
	@$(BIN)/keras-bert demo

test: $(INSTALLED)
	@echo "Running the tests a contributor needs ..."
	@$(PYTEST) -m "not slow and not shared"

test-all: $(INSTALLED)
	@echo "Running all tests ..."
	@$(PYTEST)

lint: $(INSTALLED)
	@echo "Checking style (ruff) and types (mypy, on the package as it is installed) ..."
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet . || { echo "Some files are not formatted: run $(BIN)/ruff format ."; exit 1; }
	@$(BIN)/python tests/check_types.py

bench: $(INSTALLED)
	@echo "Measuring, side by side with peers ..."
	@$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache
