# Every target does its own set-up: nothing is needed before but Python 3.11+ and make.
PYTHON ?= python3
BIN := .venv/bin
CONFIG ?= configs/quickstart.yaml
# Many tests wait, for a broker or for a process of their own: with a worker for each core a quarter of the time is idle.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(os.cpu_count() * 3 // 2)')

# The Spark of the tests: the newest whose Kafka source, tests/spark/pom.xml, is on every mirror of Maven's.
SPARK := 4.2.0

# Where an environment forbids bytecode, each worker would rewrite the assertions of all tests, and each of the processes
# that tests start compile all modules.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test test-long test-spark lint types docs lock kafka-demo clean

# The stamp is renewed whenever the dependencies change, so a second run starts at once.
.venv/ready: pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("streamkernel needs Python 3.11 or newer, this is " + sys.version.split()[0] + ": set PYTHON=python3.12 or so")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

run: .venv/ready
	$(BIN)/streamkernel run $(CONFIG) --fresh

# One thread of OpenBLAS a worker: threads wait for each other at full load, which the other workers pay for.
test: lint types
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m 'not long'

# Minutes each: the same promises in their long form, and those that have no short one.
test-long: .venv/ready
	$(BIN)/python -m pytest -n auto --dist worksteal -m long

# Spark and what it needs, apart from all else: the default install and suite have none of it.
.venv/spark/ready: .venv/ready requirements-spark.lock
	$(PYTHON) -m venv .venv/spark
	.venv/spark/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements-spark.lock
	.venv/spark/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# One after the other: each is a session, or several, of as many threads as there are cores.
test-spark: .venv/spark/ready
	OPENBLAS_NUM_THREADS=1 .venv/spark/bin/python -m pytest tests/spark streamkernel/spark

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/ready
	$(BIN)/mypy

# The site, into out/site; a warning is an error. (Material warns of a MkDocs 2, which pyproject.toml does not allow.)
docs: .venv/ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The newest versions that pyproject.toml allows, for every Python it allows, with the hashes of their files.
lock:
	$(PYTHON) -m venv .venv/lock
	.venv/lock/bin/python -m pip install --quiet --disable-pip-version-check uv
	.venv/lock/bin/uv pip compile pyproject.toml --extra dev --extra docs --universal --python-version 3.11 --upgrade --generate-hashes \
		--no-emit-package streamkernel --custom-compile-command 'make lock' --quiet --output-file requirements.lock
	echo "pyspark==$(SPARK)" | .venv/lock/bin/uv pip compile pyproject.toml --extra dev --extra spark --universal --python-version 3.11 --generate-hashes \
		--constraint - --no-emit-package streamkernel --custom-compile-command 'make lock' --quiet --output-file requirements-spark.lock
	.venv/lock/bin/uv pip compile pyproject.toml --extra kafka-codecs --extra registry --universal --python-version 3.11 --generate-hashes \
		--constraint requirements.lock --no-emit-package streamkernel --custom-compile-command 'make lock' --quiet --output-file requirements-image.lock

kafka-demo: .venv/ready
	$(BIN)/python -m examples.kafka_demo

clean:
	rm -rf .venv out build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
