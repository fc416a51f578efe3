# Two commands do everything, also as the first ones ever typed in a fresh clone:
#   make demo    a shop on Spark, kept up to date while its tables change
#   make test    style, types, tests and every example in the docs
# and make portable runs what needs Python alone on the newest Python
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS = $(shell $(PYTHON) -c "import os; print((os.cpu_count() or 1) + 1)")
READY := $(VENV)/.ready
FIND_JAVA := from ebbflow.engine.spark.session import find_java; find_java()
PORTABLE := $(VENV)/portable
PYODIDE := 314.0.7
GET_JAVA := apt-get install -qq -y openjdk-17-jre-headless >/dev/null 2>&1

# What each of the processes that run tests would do for itself: kernels and tests are compiled, side by side.
ONCE = $(BIN)/ebbflow compile & $(BIN)/pytest --collect-only -qq >/dev/null; wait $$!

GET_PORTABLE = test -e $(PORTABLE)/$(PYODIDE) || { command -v node >/dev/null && command -v npm >/dev/null && \
  npm install --silent --no-audit --no-fund --prefix $(PORTABLE) pyodide@$(PYODIDE) >/dev/null 2>&1 && \
  $(BIN)/python -m pip install -q --disable-pip-version-check --upgrade --target $(PORTABLE)/packages \
    --only-binary :all: --platform any --implementation py --abi none --python-version 3.14 \
    'pytest<9.1' hypothesis cloudpickle tzdata && touch $(PORTABLE)/$(PYODIDE); }

# Bytecode is kept: without it every process, and each of Spark's workers, compiles all it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test slow portable bench audit clean

demo: $(READY)
	@$(BIN)/ebbflow demo

test: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(ONCE)
	PYTHONHASHSEED=0 $(BIN)/pytest -m "not slow" -n $(WORKERS) --dist loadgroup  # test ids must be alike in all processes

slow: $(READY)
	@$(ONCE)
	PYTHONHASHSEED=0 $(BIN)/pytest -m slow -n $(WORKERS) --dist loadgroup --durations=20 tests

# Doctests and pure tests on the CPython 3.14 of the npm package pyodide, where npm can be reached.
portable: $(READY)
	@if $(GET_PORTABLE); then node tools/portable.mjs $(PORTABLE); \
	  else echo "portable: left out, as npm or its registry cannot be reached"; fi

bench: $(READY)
	@for file in benchmarks/bench_*.py; do $(BIN)/python $$file || exit 1; done

# Known vulnerabilities of what the tests run with. It needs the network; what cannot be looked up is an error.
audit: $(READY)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt pip-audit
	$(BIN)/pip-audit --strict --disable-pip --no-deps -r constraints.txt

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache

# Rebuilt only when what it installs changes.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "ebbflow needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt hatchling editables setuptools wheel
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt --no-build-isolation -e '.[dev]'
	@$(BIN)/python -c '$(FIND_JAVA)' 2>/dev/null || \
	  { echo "Spark needs Java 17 or newer and there is none: installing openjdk-17-jre-headless with apt-get"; \
	    $(GET_JAVA) || sudo -n $(GET_JAVA) || \
	    echo "that was not possible; install it by hand, as in: apt install openjdk-17-jre-headless"; }
	@touch $@
