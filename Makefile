# Needs Python 3.11 (or newer) and make; everything else is installed into .venv.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
COMPILE := $(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --python-version 3.11 --universal

.PHONY: run test check bench demo openapi lock clean run-deps dev-deps bench-deps

run: run-deps ## bring up the product in the foreground
	@exec $(BIN)/python -m config.supervise

test: dev-deps ## everything that must pass
	$(BIN)/python -m pytest -n 2 --dist loadgroup $(ARGS)

check: dev-deps ## style, types, layers, migrations, OpenAPI
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy .
	$(BIN)/lint-imports
	$(BIN)/python manage.py makemigrations --check --dry-run
	@now=$$(mktemp) && trap 'rm -f "$$now"' EXIT && \
	$(BIN)/python manage.py spectacular --validate --fail-on-warn --file "$$now" && \
	{ diff -u config/openapi.yaml "$$now" || { echo "config/openapi.yaml is not current: make openapi" >&2; exit 1; }; }

bench: bench-deps ## benchmarks, each beside its baseline
	$(BIN)/python -m bench $(ARGS)

demo: run-deps ## play a short conversation
	$(BIN)/python manage.py demo $(ARGS)

openapi: dev-deps ## rewrite the API's description from the code
	$(BIN)/python manage.py spectacular --validate --fail-on-warn --file config/openapi.yaml

lock: $(BIN)/python ## resolve pyproject.toml anew
	@test -x $(BIN)/uv || $(PIP) install uv
	$(COMPILE) pyproject.toml --output-file requirements.lock $(ARGS)
	$(COMPILE) pyproject.toml --group dev --constraints requirements.lock --output-file requirements-dev.lock $(ARGS)
	$(COMPILE) pyproject.toml --group dev --group bench --constraints requirements-dev.lock --output-file requirements-bench.lock $(ARGS)

clean: ## all but the data folder
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.data/*' -prune -exec rm -rf {} +

# A stamp holds the checksum of the lock that was installed, so only a changed lock installs anything. The
# development lock contains all of the product's, and that of the benchmarks all of both.
run-deps: $(BIN)/python
	@want=$$(cksum < requirements.lock) && \
	{ [ "$$(cat $(VENV)/run.stamp 2>/dev/null)" = "$$want" ] || \
	  { echo "Installing the locked dependencies (a minute or two the first time) …" && \
	    $(PIP) install --require-hashes -r requirements.lock && echo "$$want" > $(VENV)/run.stamp; }; }

dev-deps: $(BIN)/python
	@want=$$(cksum < requirements-dev.lock) && \
	{ [ "$$(cat $(VENV)/dev.stamp 2>/dev/null)" = "$$want" ] || \
	  { echo "Installing the locked development dependencies (a minute or two the first time) …" && \
	    $(PIP) install --require-hashes -r requirements-dev.lock && echo "$$want" > $(VENV)/dev.stamp; }; }

bench-deps: $(BIN)/python
	@want=$$(cksum < requirements-bench.lock) && \
	{ [ "$$(cat $(VENV)/bench.stamp 2>/dev/null)" = "$$want" ] || \
	  { echo "Installing what the benchmarks compare with (a minute or two the first time) …" && \
	    $(PIP) install --require-hashes -r requirements-bench.lock && echo "$$want" > $(VENV)/bench.stamp; }; }

$(BIN)/python:
	@for python in python3.11 python3.12 python3.13 python3; do \
	  if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then found=$$python; break; fi; \
	done; \
	if [ -z "$$found" ]; then echo "Python 3.11 or newer is needed, and none was found on the PATH." >&2; exit 1; fi; \
	echo "Making $(VENV) with $$($$found --version) …"; \
	$$found -m venv $(VENV) || { rm -rf $(VENV); echo "$$found cannot make a virtual environment (on Debian: install python3-venv)." >&2; exit 1; }
