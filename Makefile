# eke: `make run` and `make test` do their own set-up. `make help` lists the rest.
SHELL   := /bin/sh
export PATH := $(HOME)/.cargo/bin:$(PATH)
PREFIX  ?= /usr/local
DESTDIR ?=
# Where desktops search for what starts with a session, in xdg/autostart
SYSCONFDIR ?= /etc
CARGO   ?= cargo
BIN     ?= target/release
NATIVE  ?= $(BIN)
# Where zsh searches for completions, below PREFIX; packages for Debian set share/zsh/vendor-completions
ZSH     ?= share/zsh/site-functions
# The installed programs and their crates
PROGRAMS := eke eke-agent eke-cache eke-cache-shared eke-dash eke-io eke-ltsp eke-prefetch eke-record
PRODUCT := -p eke-cli -p eke-agent -p eke-cache-engine -p eke-cache-serve -p eke-dash -p eke-iod -p eke-ltsp -p eke-prefetchd -p eke-record
# The small machine (QEMU): fetch = install and download its parts, find = use it if present, skip
EKE_VM  ?= fetch

TIME    ?= 60
# Experiments of `make compare`, and the number of runs for each revision
EXPERIMENT ?= reads store
ROUNDS     ?= 2
# `make field`: the machines (all), a package or a directory with some (target/packages), and where images are kept (several GB)
FIELD        ?=
DEB          ?=
FIELD_IMAGES ?= target/field/images

.PHONY: help setup setup-test build size dev run test test-real test-beside test-others test-doc test-vm fuzz differ check lint deny docs build-bench bench-agent bench-quick compare evidence field bench-deps install install-bench product programs install-files install-bench-files packages packages-check uninstall clean

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

size: build ## sizes of the programs; fails if `eke` is larger than 5,250,000 bytes without unwind tables
	@./scripts/size $(BIN) $(PROGRAMS)

run: ## measure this machine, apply the plan, show it live; Ctrl-C reverts everything; without root print the plan
	@./scripts/as-caller $(MAKE) --no-print-directory build
	@[ "$$(id -u)" != 0 ] || exec $(BIN)/eke run; $(BIN)/eke plan && echo '`sudo make run` applies it and shows it live.'

test: setup ## all tests and checks that this machine can run; lists and counts skipped ones
	@./scripts/test "$(MAKE)" "$(CARGO)"
	@./scripts/count-skipped target/deny.log target/test-real.log target/test-beside.log target/test-others.log target/test-vm.log target/test-again.log

test-real: setup-test ## tests of the real kernel, as root: swap, mounts, disks, BPF
	@mkdir -p target
	@EKE_PROGRAMS=built EKE_VM=$(EKE_VM) CARGO="$(CARGO)" ./scripts/cargo-test target/test-real.log $$(./scripts/test-targets real) -- --nocapture --test-threads=2

test-beside: setup-test ## tests of the real kernel that need nothing but a mount or files of their own
	@mkdir -p target
	@EKE_PROGRAMS=built CARGO="$(CARGO)" ./scripts/cargo-test target/test-beside.log $$(./scripts/test-targets beside) -- --nocapture --test-threads=2

test-others: setup-test ## all tests but those of the real kernel, of the small machine and of documentation
	@mkdir -p target
	@EKE_PROGRAMS=built CARGO="$(CARGO)" ./scripts/cargo-test target/test-others.log $$(./scripts/test-targets others) -- --nocapture --test-threads=2

test-doc: setup-test ## the examples in documentation
	@mkdir -p target
	@EKE_PROGRAMS=built ./scripts/logged target/test-doc.log $(CARGO) test --workspace --doc $$(./scripts/features)

test-vm: setup ## tests in the small machine: 124 MB, another kernel
	@mkdir -p target
	@EKE_VM=$(EKE_VM) CARGO="$(CARGO)" ./scripts/cargo-test target/test-vm.log --test vm -- --nocapture --test-threads=1

fuzz: ## fuzz all parsers, TIME seconds each (60), or only TARGET=name; failing inputs are kept in fuzz/found
	@TIME=$(TIME) ./scripts/fuzz $(TARGET)

differ: setup ## random operations on a mount and on a plain directory, as root, TIME seconds for each variant (60); differences are written to target/differ.txt
	@EKE_TESTS=require EKE_DIFFER_SECONDS=$(TIME) EKE_DIFFER_FOUND=$(CURDIR)/target/differ.txt \
	  $(CARGO) test -p eke-cache-serve --test real_differ -- --nocapture --test-threads=1

check: lint deny ## formatting, lints, generated documents, licences and advisories

lint: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets $$(./scripts/features) -- -D warnings

deny: setup
	@mkdir -p target
	@./scripts/logged target/deny.log ./scripts/deny

docs: build-bench size ## regenerate docs/: tables and schemas from the programs, man pages in target/man, pictures from docs/results
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

evidence: ## the results behind README's table and most others again, of this commit, into target/evidence (root; eight hours; continues if it was interrupted): ONLY=names,reads CORPUS=DIR LIST=1 KEEP=1
	@./scripts/as-caller $(MAKE) --no-print-directory build-bench
	@./scripts/as-caller $(CARGO) build --quiet --release -p eke-evidence
	@$(BIN)/eke-evidence $(if $(ONLY),--only "$(ONLY)") $(if $(CORPUS),--corpus "$(CORPUS)") $(if $(LIST),--list) $(if $(KEEP),--keep)

field: ## install, use and remove the package on emulated Debian machines (root; hours), write docs/field.md: FIELD=debian13,i386 DEB=FILE AGAIN=1 AT_ONCE=4
	@./scripts/as-caller $(CARGO) build --release -p eke-field
	@$(BIN)/eke-field --machines "$(FIELD)" $(if $(DEB),$(foreach file,$(DEB),--deb $(file))) $(if $(AGAIN),--again) \
	  $(if $(AT_ONCE),--at-once $(AT_ONCE)) --images "$(FIELD_IMAGES)"

bench-deps: ## install what the experiments need: an X server, viewers, documents, a browser; report what is missing
	@./scripts/bench-deps

install: ## to PREFIX (/usr/local); DESTDIR for packagers
	@./scripts/as-caller $(MAKE) --no-print-directory build
	@$(MAKE) --no-print-directory install-files

install-bench: ## also install the experiments, to the same directories
	@./scripts/as-caller $(MAKE) --no-print-directory build-bench
	@$(MAKE) --no-print-directory install-bench-files

# For packages/build
product:
	@echo $(PRODUCT)
programs:
	@echo $(PROGRAMS)

# What BIN has; NATIVE are the same programs for the machine that builds, which write the man pages and completions.
install-files:
	for program in $(PROGRAMS); do install -Dm755 $(BIN)/$$program $(DESTDIR)$(PREFIX)/bin/$$program || exit 1; done
	install -d $(DESTDIR)$(PREFIX)/share/man/man1
	$(NATIVE)/eke man --directory $(DESTDIR)$(PREFIX)/share/man/man1
	install -Dm644 crates/model/src/default.toml $(DESTDIR)$(PREFIX)/share/doc/eke/eke.toml
	for name in lab machine; do install -Dm644 docs/grafana/$$name.json $(DESTDIR)$(PREFIX)/share/doc/eke/grafana-$$name.json || exit 1; done
	$(NATIVE)/eke completions bash | install -Dm644 /dev/stdin $(DESTDIR)$(PREFIX)/share/bash-completion/completions/eke
	$(NATIVE)/eke completions zsh | install -Dm644 /dev/stdin $(DESTDIR)$(PREFIX)/$(ZSH)/_eke
	$(NATIVE)/eke completions fish | install -Dm644 /dev/stdin $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/eke.fish
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	sed 's|@BIN@|$(PREFIX)/bin|' units/eke-metrics.service >$(DESTDIR)$(PREFIX)/lib/systemd/system/eke-metrics.service
	install -Dm644 units/eke-metrics.timer $(DESTDIR)$(PREFIX)/lib/systemd/system/eke-metrics.timer
	install -Dm644 units/eke-notify.desktop $(DESTDIR)$(SYSCONFDIR)/xdg/autostart/eke-notify.desktop
	install -Dm644 -t $(DESTDIR)$(PREFIX)/share/cockpit/eke units/cockpit/eke/*

install-bench-files:
	install -Dm755 $(BIN)/eke-bench $(DESTDIR)$(PREFIX)/bin/eke-bench
	install -d $(DESTDIR)$(PREFIX)/share/man/man1
	$(NATIVE)/eke-bench man --directory $(DESTDIR)$(PREFIX)/share/man/man1
	$(NATIVE)/eke-bench completions bash | install -Dm644 /dev/stdin $(DESTDIR)$(PREFIX)/share/bash-completion/completions/eke-bench
	$(NATIVE)/eke-bench completions zsh | install -Dm644 /dev/stdin $(DESTDIR)$(PREFIX)/$(ZSH)/_eke-bench
	$(NATIVE)/eke-bench completions fish | install -Dm644 /dev/stdin $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/eke-bench.fish

packages: ## .deb, .rpm and a static tarball in target/packages, as root: ARCH="amd64 arm64 i386 armhf"
	@./packages/make $(ARCH)

packages-check: ## install, run and remove those packages in new roots of Debian, as root; AGAIN=1 builds a second time and compares the bytes
	@AGAIN=$(AGAIN) ./packages/check

uninstall: ## revert all changes by eke, end its mounts, then remove the installed files and eke's own files
	@./scripts/uninstall "$(PREFIX)" "$(DESTDIR)"

clean:
	$(CARGO) clean
