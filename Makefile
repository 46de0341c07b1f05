PREFIX ?= /usr/local
KAIDO := $(or $(CARGO_TARGET_DIR),target)/release/kaido

.PHONY: help deps build demo publisher test test-publisher test-guest fuzz soak bench bench-guest lint audit install

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile

deps: ## install missing packages and tools
	@scripts/deps.sh --lint

build: ## build target/release/kaido, and its library for AF_XDP clients
	@scripts/deps.sh
	@scripts/cargo build --release --locked --package kaido --package kaido-interposer

demo: build ## run the path-control experiment; FULL=1 for the full rates, DATAPLANE=xdp for XDP
	@scripts/as-root $(KAIDO) demo $(if $(FULL),--full) $(if $(DATAPLANE),--dataplane $(DATAPLANE))

test: ## lint, then run all tests as root, including those in the guest
	@scripts/test.sh

publisher: ## build kaido-publish, a small static binary for VMs
	@scripts/publisher.sh

test-publisher: ## test kaido-publish in a virtual machine with an ivshmem device
	@scripts/deps.sh --lint
	@scripts/guest/publish.sh

test-guest: ## run the kernel tests on Linux 6.1, and the systemd unit, in virtual machines
	@scripts/deps.sh --lint
	@scripts/guest/test.sh && scripts/guest/unit.sh

fuzz: ## fuzz the packet and file parsers, one minute each
	@scripts/fuzz.sh

soak: ## run the long tests (four hours) as root
	@scripts/soak.sh

bench: build ## run all benchmarks as root
	@scripts/as-root $(KAIDO) bench

bench-guest: ## count the instructions of SRv6 in the virtual machine
	@scripts/deps.sh --lint
	@scripts/guest/bench.sh

lint: ## check formatting, lints, layers, schemas and licences
	@scripts/deps.sh --lint
	@scripts/lint.sh

audit: ## check the dependencies against RustSec's advisories (needs a network)
	@scripts/deps.sh --audit
	@scripts/audit.sh

install: build ## install the command, its library, its manual, completions and a systemd unit under PREFIX
	@scripts/as-root scripts/install.sh $(KAIDO) $(PREFIX) $(DESTDIR)
