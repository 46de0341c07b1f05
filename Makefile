PREFIX ?= /usr/local
KAIDO := $(or $(CARGO_TARGET_DIR),target)/release/kaido

.PHONY: help deps build demo publisher test test-publisher test-guest fuzz soak bench bench-guest lint audit install

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile

deps: ## install the packages and tools that are missing
	@scripts/deps.sh --lint

build: ## build target/release/kaido
	@scripts/deps.sh
	@scripts/cargo build --release --locked --package kaido

demo: build ## run the path-control experiment; FULL=1 for the full rates, DATAPLANE=xdp for XDP
	@scripts/as-root $(KAIDO) demo $(if $(FULL),--full) $(if $(DATAPLANE),--dataplane $(DATAPLANE))

test: ## lint, then run every test, as root, and those of the guest
	@scripts/test.sh

publisher: ## build kaido-publish, static and small, for VMs
	@scripts/publisher.sh

test-publisher: ## run it in a virtual machine with an ivshmem device, and read it from outside
	@scripts/deps.sh --lint
	@scripts/guest/publish.sh

test-guest: ## run the tests of what touches the kernel on Linux 6.1, in a virtual machine
	@scripts/deps.sh --lint
	@scripts/guest/test.sh

fuzz: ## fuzz what reads packets and files, a minute each
	@scripts/fuzz.sh

soak: ## run the proofs that take long (four hours), as root
	@scripts/soak.sh

bench: build ## measure, as root
	@scripts/as-root $(KAIDO) bench

bench-guest: ## count what SRv6 takes of instructions, in the virtual machine
	@scripts/deps.sh --lint
	@scripts/guest/bench.sh

lint: ## check format, lints, floors, schema and licences
	@scripts/deps.sh --lint
	@scripts/lint.sh

audit: ## look the crates that are used up in RustSec's advisories (needs a network)
	@scripts/deps.sh --lint
	@scripts/audit.sh

install: build ## install the command, its manual, completions and a systemd unit under PREFIX
	@scripts/as-root scripts/install.sh $(KAIDO) $(PREFIX) $(DESTDIR)
