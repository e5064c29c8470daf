# Targets; `make help` lists them.
GO       ?= go
BASE     ?= HEAD~1
COUNT    ?= 6
SIZE     ?= 200000x
MESSAGES ?= 200000
RUNS     ?= 5
OUT      ?= bench/results/growth.txt
SOAK     ?= 10m
PEERS    ?= $(lastword $(sort $(wildcard bench/results/peers-*.json)))


.PHONY: help test race serial lint fmt bench bench-once bench-compare bench-peers bench-growth soak chart stress fuzz loadtest cover vulncheck

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | expand -t 16

test: ## all tests; those that need redis-server skip where there is none
	$(GO) test ./...

race: ## all tests with the race detector; a missing redis-server is a failure
	BQ_REQUIRE_REDIS=1 $(GO) test -race ./...

serial: ## latency and rate assertions, one at a time, without the race detector
	BQ_REQUIRE_REDIS=1 $(GO) test -tags serial -p 1 -count 1 -run '^TestSerial' ./...

lint: ## gofmt, vet and golangci-lint
	@test -z "$$(gofmt -l .)" || { gofmt -l .; exit 1; }
	$(GO) vet -tags serial ./...
	golangci-lint run --allow-parallel-runners ./...

vulncheck: ## known vulnerabilities in what is linked; needs a network, so CI does not run it
	$(GO) run golang.org/x/vuln/cmd/govulncheck@latest ./...

fmt: ## format the code
	gofmt -w .

bench: ## every benchmark, COUNT times
	$(GO) test -run '^$$' -bench . -count $(COUNT) -benchtime $(SIZE) ./bench

bench-once: ## every benchmark once, to see that it works
	$(GO) test -run '^$$' -bench . -benchtime 100x ./bench ./envelope

bench-compare: ## the end-to-end benchmarks at BASE and here, in turn, compared by benchstat
	./bench/compare.sh $(BASE) $(COUNT) $(SIZE)

bench-peers: ## the same work on other queues, in turn; one table, and a dated file in bench/results
	cd bench/peers/bullmq && npm install --no-audit --no-fund --no-package-lock --loglevel=error
	cd bench/peers && $(GO) run . -messages $(MESSAGES) -runs $(RUNS) -out ../results -revision "$$(git rev-parse --short HEAD)"

bench-growth: ## how the cost of a message grows with the work; tables and raw lines in OUT
	./bench/growth.sh $(COUNT) $(SIZE) $(OUT)

soak: ## ten minutes of 10,000 messages a second in each layout; the memory of the consumer must not grow
	BQ_SOAK=$(SOAK) $(GO) test -run '^$$' -bench Soak -benchtime 1x -timeout 2h ./bench

chart: ## the chart of the README, from PEERS, a results file
	$(GO) run ./bench/chart -in $(PEERS) -out docs/peers.svg

stress: ## the long forms of the fault, chaos and model tests, and every concurrent package ten times
	BQ_REQUIRE_REDIS=1 BQ_STRESS=1 $(GO) test -p 1 -count 1 -timeout 60m ./internal/faulttest ./internal/modeltest
	BQ_REQUIRE_REDIS=1 BQ_STRESS=1 $(GO) test -count 1 -timeout 60m -run '^TestChaos' ./cmd/loadtest
	BQ_REQUIRE_REDIS=1 $(GO) test -p 1 -count 10 -timeout 60m ./internal/flow ./internal/slots ./router ./acker ./reserver ./scheduler ./pool

fuzz: ## each fuzz target for ten minutes
	./.ci/fuzz 10m

loadtest: ## the load test in both layouts
	$(GO) run ./cmd/loadtest -layout legacy
	$(GO) run ./cmd/loadtest -layout zset

cover: ## statement coverage of all packages
	BQ_REQUIRE_REDIS=1 $(GO) test -coverpkg=./... -coverprofile=coverage.out ./...
	$(GO) tool cover -func=coverage.out | tail -1
