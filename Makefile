# eke: `make run` and `make test` do their own set-up. `make help` lists the rest.
SHELL   := /bin/sh
export PATH := $(HOME)/.cargo/bin:$(PATH)
PREFIX  ?= /usr/local
DESTDIR ?=
CARGO   ?= cargo
BIN     := target/release
# The crates of the installed programs
PRODUCT := -p eke-cli -p eke-agent -p eke-cache-serve -p eke-prefetchd -p eke-iod
# The small machine (QEMU): fetch = install and download its parts, find = use it if present, skip
EKE_VM  ?= fetch

TIME    ?= 60
# Experiments of `make compare`, and the number of runs for each revision
EXPERIMENT ?= reads store
ROUNDS     ?= 2

.PHONY: help setup setup-test build dev run test test-host test-vm fuzz differ check docs build-bench bench-agent bench-quick compare bench-deps install install-bench uninstall clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

setup:
	@./scripts/setup build

setup-test:
	@./scripts/setup test

build: setup ## the programs, optimized
	$(CARGO) build --release $(PRODUCT) $$(./scripts/features)

dev: setup ## the programs in target/debug: seconds after a change
	$(CARGO) build $(PRODUCT) $$(./scripts/features)

build-bench: build ## the experiments: eke-bench, which `eke bench` executes
	$(CARGO) build --release -p eke-bench

run: ## measure this machine, apply the plan, show it live; Ctrl-C reverts everything
	@./scripts/as-caller $(MAKE) --no-print-directory build
	@exec $(BIN)/eke run

test: setup-test check test-host test-vm ## all tests that this machine can run; lists and counts skipped ones
	@./scripts/count-skipped target/deny.log target/test-host.log target/test-vm.log

test-host: setup-test ## all tests except those in the small machine
	@mkdir -p target
	@EKE_VM=$(EKE_VM) ./scripts/logged target/test-host.log $(CARGO) test --workspace --no-fail-fast $$(./scripts/features) -- --nocapture --test-threads=2

test-vm: setup ## tests in the small machine: 124 MB, another kernel
	@mkdir -p target
	@# The whole workspace, as above: with only eke-cli's features, most crates would be built again.
	@EKE_VM=$(EKE_VM) ./scripts/logged target/test-vm.log $(CARGO) test --workspace --no-fail-fast $$(./scripts/features) --features eke-cli/vm --test vm -- --nocapture --test-threads=1

fuzz: ## fuzz all parsers, TIME seconds each (60), or only TARGET=name; failing inputs are kept in fuzz/found
	@TIME=$(TIME) ./scripts/fuzz $(TARGET)

differ: setup ## random operations on a mount and on a plain directory, as root, TIME seconds for each variant (60); differences are written to target/differ.txt
	@EKE_TESTS=require EKE_DIFFER_SECONDS=$(TIME) EKE_DIFFER_FOUND=$(CURDIR)/target/differ.txt \
	  $(CARGO) test -p eke-cache-serve --test real_differ -- --nocapture --test-threads=1

check: setup ## formatting, lints, generated documents, licences and advisories
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets $$(./scripts/features) -- -D warnings
	@mkdir -p target
	@./scripts/logged target/deny.log ./scripts/deny

docs: build-bench ## regenerate docs/: tables and schemas from the programs, man pages in target/man, pictures from docs/results
	@./scripts/docs $(BIN)/eke $(BIN)/eke-bench
	@./scripts/pictures

bench-agent: build-bench ## the agent's resident set and idle CPU
	@$(BIN)/eke bench agent

bench-quick: ## three experiments with few variants, as root; results with plots in target/results
	@./scripts/as-caller $(MAKE) --no-print-directory build-bench
	@mkdir -p target/results
	@for name in paging switch capacity; do \
	  $(BIN)/eke bench $$name --quick --force --output target/results/$$name.json --html target/results/$$name.html || exit 1; done

compare: setup ## this tree's results beside those of BASE=revision, measured alternately: EXPERIMENT="reads store", ROUNDS=2
	@[ -n "$(BASE)" ] || { echo "which revision? make compare BASE=main" >&2; exit 2; }
	@MAKE="$(MAKE)" ROUNDS="$(ROUNDS)" ./scripts/compare "$(BASE)" $(EXPERIMENT)

bench-deps: ## install what the experiments need: an X server, viewers, documents, a browser; report what is missing
	@./scripts/bench-deps

install: ## to PREFIX (/usr/local); DESTDIR for packagers
	@./scripts/as-caller $(MAKE) --no-print-directory build
	install -Dm755 $(BIN)/eke $(DESTDIR)$(PREFIX)/bin/eke
	install -Dm755 $(BIN)/eke-agent $(DESTDIR)$(PREFIX)/bin/eke-agent
	install -Dm755 $(BIN)/eke-cache $(DESTDIR)$(PREFIX)/bin/eke-cache
	install -Dm755 $(BIN)/eke-prefetch $(DESTDIR)$(PREFIX)/bin/eke-prefetch
	install -Dm755 $(BIN)/eke-io $(DESTDIR)$(PREFIX)/bin/eke-io
	install -d $(DESTDIR)$(PREFIX)/share/man/man1
	$(BIN)/eke man --directory $(DESTDIR)$(PREFIX)/share/man/man1
	install -Dm644 crates/model/src/default.toml $(DESTDIR)$(PREFIX)/share/doc/eke/eke.toml
	$(BIN)/eke completions bash | install -Dm644 /dev/stdin $(DESTDIR)$(PREFIX)/share/bash-completion/completions/eke
	$(BIN)/eke completions zsh | install -Dm644 /dev/stdin $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_eke
	$(BIN)/eke completions fish | install -Dm644 /dev/stdin $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/eke.fish

install-bench: ## also install the experiments, to the same directories
	@./scripts/as-caller $(MAKE) --no-print-directory build-bench
	install -Dm755 $(BIN)/eke-bench $(DESTDIR)$(PREFIX)/bin/eke-bench
	install -d $(DESTDIR)$(PREFIX)/share/man/man1
	$(BIN)/eke-bench man --directory $(DESTDIR)$(PREFIX)/share/man/man1
	$(BIN)/eke-bench completions bash | install -Dm644 /dev/stdin $(DESTDIR)$(PREFIX)/share/bash-completion/completions/eke-bench
	$(BIN)/eke-bench completions zsh | install -Dm644 /dev/stdin $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_eke-bench
	$(BIN)/eke-bench completions fish | install -Dm644 /dev/stdin $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/eke-bench.fish

uninstall: ## revert all changes by eke, end its mounts, then remove the installed files and eke's own files
	@./scripts/uninstall "$(PREFIX)" "$(DESTDIR)"

clean:
	$(CARGO) clean
