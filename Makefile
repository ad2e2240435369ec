# One command each; everything lands in .venv and out/. `make help` lists them.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
EXAMPLE := two-pages
ARGS ?=

.PHONY: help setup demo check test fuzz bench sheets train train-layout clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */  make \1\t/' | expand -t 24

setup: $(STAMP)  ## virtual environment with everything installed (once)

$(STAMP): pyproject.toml models/kernels.c
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --editable '.[dev]'
	@touch $@

demo: setup  ## convert the bundled PDF and show the start of the result
	@mkdir -p out
	@# 7 is "some region was lost": said on stderr, and the rest is still worth showing.
	$(BIN)/gravityocr convert examples/$(EXAMPLE).pdf -o out/$(EXAMPLE).md || [ $$? -eq 7 ]
	@printf '\nThe result is in %s. It begins:\n\n' "$(CURDIR)/out/$(EXAMPLE).md"
	@head -n 24 out/$(EXAMPLE).md

check: setup  ## lint, format and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

test: setup  ## the whole test suite
	$(BIN)/pytest $(ARGS)

fuzz: setup  ## 1,000 broken PDFs with the real model, some alone, and a run killed 50 times
	GO_FUZZ=1000 GO_KILLS=50 $(BIN)/pytest tests/fuzz tests/cli/test_run.py -k "mutant or killed" $(ARGS)

bench: setup  ## decoding speed, plain against speculative: make bench ARGS="FOLDER"
	$(BIN)/gravityocr bench $(ARGS)

sheets: setup  ## typeset LaTeX pages to train on: make sheets ARGS="--data DATA --sheets 200"
	$(BIN)/python -m gravityocr_models.train.latexpages $(ARGS)

train: setup  ## train or go on training nano: make train ARGS="--help"
	$(BIN)/python -m gravityocr_models.train.joint $(ARGS)

train-layout: setup  ## train or go on training the layout detector: make train-layout ARGS="--help"
	$(BIN)/python -m gravityocr_models.train.layout.training $(ARGS)

clean:  ## remove the virtual environment, caches and results
	rm -rf .venv out build *.egg-info .mypy_cache .ruff_cache .pytest_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
