# Everything a newcomer needs. Each target prepares its own virtual environment.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check -q
JOBS   ?= 2

# Bytecode is kept wherever make runs: the tests start many processes, and each would compile the package again.
export PYTHONDONTWRITEBYTECODE :=

NATIVE := CMakeLists.txt pyproject.toml $(wildcard native/*/*.?pp native/*/*/*.?pp)

.PHONY: help build browser test test-all test-lowest test-gpu test-sklearn lint fuzz sanitize sanitize-threads bench demo clean
help:           ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/'

# The stamps hang on what they install, so a second call does nothing.
$(VENV)/.tools: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade pip
	$(PIP) install "scikit-build-core>=0.10" "nanobind>=2.4" ninja cmake
	touch $@

$(VENV)/.built: $(VENV)/.tools $(NATIVE)
	$(PIP) install --no-build-isolation -e .
	touch $@

build: $(VENV)/.built  ## compile the native kernels and install the package for editing

$(VENV)/.test: $(VENV)/.built
	$(PIP) install --no-build-isolation -e ".[test]"
	touch $@

$(VENV)/.lint: $(VENV)/.built
	$(PIP) install --no-build-isolation -e ".[test,lint]"
	touch $@

browser:        ## Chromium and its driver (Debian packages), for the tests that open the report
	@command -v chromedriver >/dev/null && command -v chromium >/dev/null || { \
	  if [ "$$(id -u)" = 0 ]; then as=""; else as="sudo -n"; fi; \
	  command -v apt-get >/dev/null && $$as apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive $$as apt-get install -y -qq chromium chromium-driver >/dev/null; } || \
	  echo "Chromium cannot be installed here: the tests that open the report in a browser will be skipped."

# As many processes as cores already: further threads of BLAS, and waiting ones that keep a core busy, would only be in the way.
# Tests that ask about threads set their number themselves.
PYTEST := -m pytest -n $(JOBS) --dist worksteal
ALONE  := OPENBLAS_NUM_THREADS=1 OMP_WAIT_POLICY=passive

test: $(VENV)/.test browser  ## build everything and run the tests
	$(ALONE) $(BIN)/python $(PYTEST)

test-all: $(VENV)/.lint browser  ## the same, with the full products of grids that the default run meets pairwise
	$(ALONE) $(BIN)/python $(PYTEST) -m ""

test-gpu: $(VENV)/.test  ## training on a GPU beside training on the processor; skips without PyTorch and CUDA
	$(BIN)/python -m pytest -rs tests/models/neural/trainers/test_cuda.py

test-sklearn: $(VENV)/.test  ## scikit-learn's own tests with our estimators in place; writes docs/compatibility.md
	$(BIN)/python -m tests.compatibility.run -n $(JOBS)

# An environment of its own, with exactly the floors of pyproject.toml.
.venv-lowest/.test: $(NATIVE)
	test -x .venv-lowest/bin/python || $(PYTHON) -m venv .venv-lowest
	$(PYTHON) -m tests.lowest > .venv-lowest/floors.txt
	.venv-lowest/bin/python -m pip --disable-pip-version-check -q install "scikit-build-core>=0.10" "nanobind>=2.4" ninja cmake
	.venv-lowest/bin/python -m pip --disable-pip-version-check -q install --no-build-isolation \
	    -C build-dir=build/lowest -c .venv-lowest/floors.txt -e ".[test]"
	touch $@

test-lowest: .venv-lowest/.test browser  ## the tests with the lowest versions of all packages that pyproject.toml allows
	$(ALONE) .venv-lowest/bin/python $(PYTEST)

lint: $(VENV)/.lint  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

sanitize: SANITIZER = address
sanitize: $(VENV)/.test  ## the native tests under AddressSanitizer and UndefinedBehaviorSanitizer
	$(SANITIZED)

sanitize-threads: SANITIZER = thread
sanitize-threads: $(VENV)/.test  ## the native tests under ThreadSanitizer
	$(SANITIZED)

define SANITIZED
	$(BIN)/cmake -S . -B build/sanitize-$(SANITIZER) -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCERTIFIT_SANITIZE=$(SANITIZER) \
	    -DPython_EXECUTABLE=$(abspath $(BIN)/python) -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja)
	$(BIN)/cmake --build build/sanitize-$(SANITIZER)
	$(BIN)/python tests/native/sanitized.py $(SANITIZER) build/sanitize-$(SANITIZER)
endef

MINUTES ?= 5
fuzz: $(VENV)/.test  ## seeded fuzzers for MINUTES=5: fits, small and tall, a sweep, model files, tables, text; failures are written to build/fuzz
	$(BIN)/python -m tests.fuzz.run --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

# adelie needs NumPy 1, so it gets an environment of its own; the benchmark goes on without it where it cannot be installed.
.venv-adelie/.built:
	$(PYTHON) -m venv .venv-adelie
	-.venv-adelie/bin/python -m pip --disable-pip-version-check -q install adelie "numpy<2" scipy
	touch $@

bench: $(VENV)/.built .venv-adelie/.built  ## certifit beside its peers; writes benchmarks/results.md
	$(PIP) install setuptools wheel  # celer is built from source, and asks for them without saying so
	$(PIP) install --no-build-isolation -e ".[bench]"
	$(BIN)/python benchmarks/run.py
	for family in margin sgd tree boosting structured kernel_machine kernel bayes neighbors cluster neural selection hierarchy; do \
	    $(BIN)/python benchmarks/models/$$family.py; done
	$(BIN)/python benchmarks/representation/text.py

demo: $(VENV)/.built  ## the main job: a contest on a bundled table, with its report
	$(BIN)/certifit demo --out certifit-demo

clean:          ## remove what was built
	rm -rf build $(VENV)
