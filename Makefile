# Two commands do everything, also as the first ones ever typed in a fresh clone:
#   make demo    watch a view change
#   make test    style, types, tests and every example in the docs
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test slow bench clean

demo: $(READY)
	@$(BIN)/python examples/demo.py

test: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONHASHSEED=0 $(BIN)/pytest -m "not slow" -n auto --dist loadgroup  # test ids must be alike in all processes

slow: $(READY)
	$(BIN)/pytest -m slow

bench: $(READY)
	@for file in benchmarks/bench_*.py; do $(BIN)/python $$file || exit 1; done

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache

# Rebuilt only when what it installs changes.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "ebbflow needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt hatchling editables
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt --no-build-isolation -e '.[dev]'
	@touch $@
