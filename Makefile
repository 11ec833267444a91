# make help lists the targets. Everything runs on a machine with Go, git, make
# and a C compiler (for the race detector); foreign readers need Python 3.11.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := build

GO ?= go
PYTHON ?= python3
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null)
REVISION := $(shell git rev-parse HEAD 2>/dev/null)
LINK := -X main.buildVersion=$(VERSION) -X main.buildRevision=$(REVISION)

# More flags for go test, such as -count=1 or -short.
TESTFLAGS ?=
# A comma-separated list of benchmark names; empty is all of them.
BENCH ?=
# How long each fuzz target runs.
FUZZTIME ?= 30s
# How long each long proof may run; its tests print the rate they reached.
PROOF ?= 10m

# Tests find the foreign readers' Python here.
ifneq ($(wildcard .venv/bin/python),)
export SEAICE_PYTHON ?= $(CURDIR)/.venv/bin/python
endif

REPORT = $(GO) run ./tools/testreport

# Tests that plan and merge nothing.
PLANNED = ^(TestMillionFiles|TestPlan[^n])

.PHONY: help build weed readers demo test proof interop golden fuzz bench chart failures lint clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 12

build: ## build bin/seaice
	$(GO) build -ldflags '$(LINK)' -o bin/seaice ./cmd/seaice

# The flags never change: another -ldflags or -trimpath would recompile all of
# SeaweedFS, which takes minutes.
bin/weed: tools/weed/go.mod tools/weed/go.sum
	$(GO) -C tools/weed build -o ../../bin/weed github.com/seaweedfs/seaweedfs/weed
	@touch $@

weed: bin/weed ## build bin/weed, the SeaweedFS that tests and the demo run

bin/golangci-lint: tools/lint/go.mod tools/lint/go.sum
	$(GO) -C tools/lint build -o ../../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

.venv/installed: tools/readers/requirements.txt
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet --requirement tools/readers/requirements.txt
	@touch $@

readers: .venv/installed ## install the foreign readers that tests use into .venv

demo: build bin/weed ## show a maintained table on a real SeaweedFS, before and after
	$(GO) run ./cmd/demo

# The race detector makes tests up to ten times as slow, so that run is short: of what is
# repeated with other data it does a sixth. All is run without it, but what runs on clusters,
# which is run with it alone; and compaction with page copy off, and with it forced wherever
# it is allowed.
test: bin/weed ## run all tests but the long proofs
	packages=$$($(GO) list ./... | grep -v /weed_test); \
	{ $(GO) test -race -short -timeout 40m $(TESTFLAGS) -json $$packages && \
	$(GO) test -race -timeout 40m $(TESTFLAGS) -json ./weed_test && \
	$(GO) test -timeout 40m $(TESTFLAGS) -json $$packages && \
	for copying in off forced; do \
	SEAICE_COPYING=$$copying $(GO) test -timeout 20m $(TESTFLAGS) -skip '$(PLANNED)' -json ./ops/compact || exit; \
	done; } | $(REPORT)

# Long proofs are tests called TestProof…; without SEAICE_PROOF they skip.
proof: bin/weed ## run the long proofs, PROOF=10m each
	SEAICE_PROOF=$(PROOF) $(GO) test -timeout 0 -run '^TestProof' -json ./... | $(REPORT)

# Tests with foreign readers have Interop in their names. CI=true turns a
# reader that is absent into a failure.
interop: bin/weed readers ## let foreign readers read what we wrote, and the other way round
	CI=true SEAICE_PYTHON=$(CURDIR)/.venv/bin/python $(GO) test -timeout 20m -run Interop -json ./... | $(REPORT)

# Tests with golden files have Golden in their names.
golden: ## rewrite the golden files with what the tests see now
	SEAICE_GOLDEN=rewrite $(GO) test -timeout 20m -run Golden -json ./... | $(REPORT)

fuzz: ## run every fuzz target for FUZZTIME=30s
	tools/fuzz.sh $(FUZZTIME)

bench: bin/weed ## run the benchmarks, or those of BENCH=name,name
	$(GO) build -o bin/bench ./bench
	bin/bench -run '$(BENCH)'

chart: ## draw docs/benchmarks.svg from the lines in docs/benchmarks.md
	$(GO) run ./tools/benchchart <docs/benchmarks.md >docs/benchmarks.svg

failures: ## write docs/failures.md from the names of the tests
	$(GO) run ./tools/failures

lint: bin/golangci-lint ## check the code against .golangci.yml, and that docs/failures.md is current
	bin/golangci-lint run ./...
	$(GO) run ./tools/failures -check

clean: ## remove what was built
	rm -rf bin .venv .fuzz
