# Every target does its own set-up: nothing is needed before but Python 3.11+ and make.
PYTHON ?= python3
BIN := .venv/bin
CONFIG ?= configs/quickstart.yaml

# A folder or file of tests: `make test PATHS=tests/growth` runs its tests of ring 1 alone, without lint and types.
PATHS ?=
CORES := $(shell $(PYTHON) -c 'import os; print(os.cpu_count())')
# A number shuffles the tests and draws other random cases: `make test SEED=7`. In CI it follows from the commit. Without
# a number the random cases are the same every time, and the order is that of the files.
SEED ?= $(if $(CI),$(shell echo $$((0x0$$(git rev-parse HEAD | cut -c1-7)))))
SEEDED := $(if $(SEED),-p randomly --randomly-seed=$(SEED) --hypothesis-profile=seeded --hypothesis-seed=$(SEED))
# One thread of OpenBLAS a worker: threads wait for each other at full load, which the other workers pay for.
PYTEST := OPENBLAS_NUM_THREADS=1 .venv/bin/python -m pytest

# The Spark of the tests: the newest whose Kafka source, tests/spark/pom.xml, is on every mirror of Maven's.
SPARK := 4.2.0
PACKAGES := 'import sysconfig; print(sysconfig.get_path("purelib"))'

# Where an environment forbids bytecode, each worker would rewrite the assertions of all tests, and each of the processes
# that tests start compile all modules.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test ring-1 test-integration test-long test-spark lint types docs dist lock kafka-demo clean

# The stamps are renewed when the dependencies change, so a second run starts at once. The daemon runs with a third of
# the packages that tests and docs need.
.venv/run: pyproject.toml requirements-run.lock
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("streamkernel needs Python 3.11 or newer, this is " + sys.version.split()[0] + ": set PYTHON=python3.12 or so")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check --require-hashes --requirement requirements-run.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

.venv/ready: .venv/run requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	@touch $@

run: .venv/run
	$(BIN)/streamkernel run $(CONFIG) --fresh

# Ring 1: everything in one process. Lint and types run beside the tests.
ifeq ($(PATHS),)
test: .venv/ready
	$(MAKE) --no-print-directory --jobs 3 ring-1 lint types
else
test: .venv/ready
	$(PYTEST) $(SEEDED) -m 'not integration and not long' $(PATHS)
endif

ring-1: .venv/ready
	$(PYTEST) -n $(CORES) --dist worksteal $(SEEDED) -m 'not integration and not long'

# Ring 2: daemons, brokers, browsers and servers. Its tests wait as much as they work: two workers a core.
test-integration: .venv/ready
	$(PYTEST) -n $$((2 * $(CORES))) --dist worksteal $(SEEDED) -m 'integration and not long' $(PATHS)

# Ring 3: soak, chaos, fuzz and benchmarks, minutes each; then twenty times as many drawn cases as in ring 1, new ones.
test-long: .venv/ready
	$(PYTEST) -n $$((1 + $(CORES))) --dist worksteal -m long $(PATHS)
	$(PYTEST) -n $(CORES) --dist worksteal -m 'hypothesis and not integration and not long' --hypothesis-profile=nightly $(PATHS)

# Spark and what it needs, apart from all else: the default install and suite have none of it. It finds all others there.
.venv/spark/ready: .venv/ready requirements-spark.lock
	$(PYTHON) -m venv .venv/spark
	$(BIN)/python -c $(PACKAGES) >$$(.venv/spark/bin/python -c $(PACKAGES))/parent.pth
	.venv/spark/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements-spark.lock
	.venv/spark/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# One after the other: each is a session, or several, of as many threads as there are cores.
test-spark: .venv/spark/ready
	OPENBLAS_NUM_THREADS=1 .venv/spark/bin/python -m pytest tests/spark streamkernel/spark

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python docs/prose.py

types: .venv/ready
	$(BIN)/mypy

# The site, into out/site; a warning is an error. (Material warns of a MkDocs 2, which pyproject.toml does not allow.)
docs: .venv/ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# What a release uploads, into dist/, built from the last commit and tried in empty environments.
dist: .venv/ready
	$(BIN)/python -m release.dist dist

# The newest versions that pyproject.toml allows, for every Python it allows, with the hashes of their files.
lock:
	$(PYTHON) -m venv .venv/lock
	.venv/lock/bin/python -m pip install --quiet --disable-pip-version-check uv
	.venv/lock/bin/uv pip compile pyproject.toml --extra dev --extra docs --universal --python-version 3.11 --upgrade --generate-hashes \
		--no-emit-package streamkernel --custom-compile-command 'make lock' --quiet --output-file requirements.lock
	echo "pyspark==$(SPARK)" | .venv/lock/bin/uv pip compile pyproject.toml --extra dev --extra spark --universal --python-version 3.11 --generate-hashes \
		--constraint - --no-emit-package streamkernel --custom-compile-command 'make lock' --quiet --output-file requirements-spark.lock
	echo setuptools | .venv/lock/bin/uv pip compile pyproject.toml --extra daemon --universal --python-version 3.11 --generate-hashes \
		- --constraint requirements.lock --no-emit-package streamkernel --custom-compile-command 'make lock' --quiet --output-file requirements-run.lock
	.venv/lock/bin/uv pip compile pyproject.toml --extra daemon --extra kafka --extra kafka-codecs --extra registry --universal --python-version 3.11 --generate-hashes \
		--constraint requirements.lock --no-emit-package streamkernel --custom-compile-command 'make lock' --quiet --output-file requirements-image.lock

kafka-demo: .venv/ready
	$(BIN)/python -m examples.kafka_demo

clean:
	rm -rf .venv out build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
