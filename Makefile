# Everything that a fresh machine needs is done here: `make demo` to see tuimon, `make test` to check it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/installed
# Three tests at a time on two cores, as many of them wait for processes; a file's tests stay together and share its fixtures
# (tests/conftest.py). In the order of the folders, for long files last would leave workers idle. Some of attaching go two at a
# time, and with no others: they watch for what a thread of their target has not done yet, and a busy machine has more of that.
TEST_SHARES := --dist loadfile --no-loadscope-reorder
TEST_WORKERS ?= -n 3 $(TEST_SHARES)
TEST_ALONE_WORKERS ?= -n 2 $(TEST_SHARES)
TEST_ALONE := $(patsubst %,tests/attach/test_%.py,\
	borrowing environments inject matrix remote_exec rules seccomp seccomp_calls session waiting)
# where it is set, each tuimon that a test starts would compile all its modules anew
unexport PYTHONDONTWRITEBYTECODE
# the package index to take torch from; empty: .ci/install chooses one with CPU builds
TORCH_FROM ?=

# for the cases: some of them, and another Python to run them, for instance CASES='05 17 --python /usr/bin/python3.12'
CASES ?=
# some of the benches
BENCHES ?=
# some of the targets of the fuzzer
FUZZ ?=

.PHONY: help demo tour docs test lint bench bench-instructions bench-more cases cases-attach cases-log cases-neutral attach-matrix
.PHONY: attach-proof attach-vm faults soak fuzz clean
.DEFAULT_GOAL := help

help:
	@echo 'make demo    install into $(VENV), then a training program and the monitor on it (no terminal: a report)'
	@echo 'make tour    install into $(VENV), then three minutes through the screens of the monitor, on a recording'
	@echo 'make test    install into $(VENV), then lint, type check and tests'
	@echo 'make lint    ruff and mypy alone'
	@echo 'make docs    what is made of the code: the reference of commands, the page of the report, the pictures'
	@echo 'make bench   what tuimon costs, beside what it could be replaced by, as a Markdown document: also in bench.md (some 15'
	@echo '             minutes, on a machine that does nothing else; BENCHES="step side" runs some of them)'
	@echo 'make bench-instructions    instructions in a step, counted by valgrind: for a busy machine (some 15 minutes)'
	@echo 'make bench-more      compiling, steps, faults put in, many ranks, recordings and files, as figures'
	@echo 'make cases   programs with known breaks and recompiles, from the folder that TUIMON_CASES names'
	@echo 'make cases-attach    the same, attached to in the middle of the run'
	@echo 'make cases-log       the same, each told by its TORCH_TRACE log alone'
	@echo 'make cases-neutral   the same without tuimon, attached to and detached from, and under `tuimon run`: no difference'
	@echo '                     (long; CASES="05 17 --python PATH" runs some of them, on another Python)'
	@echo 'make attach-matrix   attaching, by every Python here, kind of target and mechanism (long; TUIMON_PYTHONS names more)'
	@echo 'make attach-proof    the tests of attaching with ten times the attaches; 1,000 attach cycles on a training run, 400 kills,'
	@echo '                     3,600 attaches to a forking one (over an hour)'
	@echo 'make attach-vm       attaching on aarch64 and under ptrace_scope 0 to 3, in emulated machines (qemu, root)'
	@echo 'make faults  what can go wrong at tuimon or at a job, tried hundreds of times each; a table (over an hour)'
	@echo 'make soak    eight hours of events through the model, then half an hour of a real job: counts equal, memory flat'
	@echo 'make fuzz    odd bytes, values, words and files at every way in, two minutes each (over an hour; FUZZ="log themes" tries some;'
	@echo '             guided by coverage where `.venv/bin/pip install atheris` was run, on Python 3.11 to 3.13)'
	@echo 'make clean   remove $(VENV) and the caches of the tools'
	@echo 'PYTHON=python3.12 chooses another Python (3.10 or later)'

demo: $(READY)
	@$(BIN)/tuimon demo

tour: $(READY)
	@$(BIN)/tuimon demo --tour

test: $(READY) lint
	@echo 'make: running the tests' >&2
	@$(BIN)/python -m pytest $(TEST_WORKERS) $(addprefix --ignore=,$(TEST_ALONE))
	@$(BIN)/python -m pytest $(TEST_ALONE_WORKERS) $(TEST_ALONE)

lint: $(READY)
	@echo 'make: ruff, then mypy' >&2
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

docs: $(READY)
	@$(BIN)/python -m tools.reference
	@$(BIN)/python -m tools.report_fields
	@$(BIN)/python -m tools.pictures

bench: $(READY)
	@$(BIN)/python -m tests.bench --out bench.md $(BENCHES)

bench-instructions: $(READY)
	@$(BIN)/python -m tests.bench.instructions

bench-more: $(READY)
	@$(BIN)/python -m tests.bench.hook_cost
	@$(BIN)/python -m tests.bench.attach_cycles
	@$(BIN)/python -m tests.bench.fold_cost
	@$(BIN)/python -m tests.bench.account_sums
	@$(BIN)/python -m tests.bench.injected --faults 210
	@$(BIN)/python -m tests.bench.many_ranks --seconds 40
	@$(BIN)/python -m tests.bench.recording
	@$(BIN)/python -m tests.bench.replay
	@$(BIN)/python -m tests.bench.files

cases: $(READY)
	@$(BIN)/python -m tests.cases $(CASES)

cases-attach: $(READY)
	@$(BIN)/python -m tests.cases --attach $(CASES)

cases-log: $(READY)
	@$(BIN)/python -m tests.cases --log $(CASES)

cases-neutral: $(READY)
	@$(BIN)/python -m tests.cases --neutral $(CASES)

attach-matrix: $(READY)
	@$(BIN)/python -m tests.attach.matrix

attach-proof: $(READY)
	@TUIMON_CYCLES=100 $(BIN)/python -m pytest $(TEST_ALONE)
	@$(BIN)/python -m tests.attach.cycles --cycles 1000
	@$(BIN)/python -m tests.attach.kills --attaching 300 --streaming 100
	@$(BIN)/python -m tests.attach.forkhang --runs 6 --attaches 600

attach-vm: $(READY)
	@$(BIN)/python -m tests.vm.run && $(BIN)/python -m tests.vm.run trixie-16k

faults: $(READY)
	@$(BIN)/python -m tests.faults --full

soak: $(READY)
	@$(BIN)/python -m tests.soak.replay --hours 8
	@$(BIN)/python -m tests.soak.job --minutes 30

fuzz: $(READY)
	@$(BIN)/python -m tests.fuzz --seconds 120 $(FUZZ)

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis

# made again when what is to be installed changes; pip's own words go to stderr, stdout is for the report
$(READY): pyproject.toml .ci/install
	@PYTHON='$(PYTHON)' TORCH_FROM='$(TORCH_FROM)' .ci/install $(VENV) >&2
	@touch $@
