SHELL := bash
.DEFAULT_GOAL := help
GO ?= go

# Two packages at a time, whatever the machine: several start Kafka or RabbitMQ,
# and a broker that starves makes timeouts, not findings.
TEST := $(GO) test -count=1 -p 2

# A program with the race detector sleeps for a second at its end, and the tests
# start and end some hundreds: services, nodes, and the supervisors of brokers. It
# waits for reports that are under way without that, too.
export GORACE ?= atexit_sleep_ms=0

.PHONY: help build setup prepare prepare-tests prepare-peers test bench bench-smoke peers book run up lint vuln soak readme clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/queuelab and bin/seckill
	$(GO) build -o bin/queuelab ./bench
	$(GO) build -o bin/seckill ./app

setup: ## install what is missing: Debian packages and Kafka's jars; nothing where Docker answers
	@compose/setup.sh

# As setup, but a laptop goes on with what it has; CI does not.
prepare prepare-tests prepare-peers:
	@compose/setup.sh $(patsubst prepare-%,--%,$(filter prepare-%,$@)) || { [ "$${CI:-}" != true ] && echo "setup: going on with what is here"; }

test: prepare-tests ## set up, then run every test with the race detector
	$(TEST) -race -timeout 20m ./...

bench: prepare build ## set up, then measure every setting and fault once (10 minutes on 2 cores)
	bin/queuelab run --suite quick $(ARGS)

peers: prepare-peers build ## set up, then run each broker's own load tool and ours in turns; ARGS="--backends kafka"
	bin/queuelab peers $(ARGS)

bench-smoke: build ## measure what needs nothing but Go (a minute)
	bin/queuelab run --suite smoke $(ARGS)

book: prepare build ## do every lesson and write the book of this run: bin/book/index.html
	bin/queuelab learn --book bin/book $(ARGS)

run: ## serve the flash sale with nothing installed
	$(GO) run ./app $(ARGS)

up: prepare build ## run the brokers in the foreground; ARGS="redis kafka" for some of them
	bin/queuelab up $(ARGS)

lint: ## gofmt, vet, go mod tidy and golangci-lint, all of which must have nothing to say
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$unformatted" ] || { echo "gofmt would change: $$unformatted"; exit 1; }
	$(GO) vet ./...
	$(GO) mod tidy -diff
	$(GO) tool -modfile=.tools/lint.mod golangci-lint run

vuln: ## look for known faults in the modules that our code reaches, without the network's database
	@.tools/vuln.sh

soak: prepare-tests ## the tests that are too long for test: more kills, every sale (hours)
	QUEUELAB_SOAK=1 $(TEST) -timeout 6h ./...

readme: build ## regenerate the READMEs' tables; ARGS="--result DIR" for the result too
	bin/queuelab readme $(ARGS)

clean: ## remove what was built
	rm -rf bin .cache
