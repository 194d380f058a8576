#: bench          rdm bench: what the library costs beside the designs that it replaces
#: bench-check    lookups on two threads, at least 20 times as fast as the two locks of the design that they replace
.PHONY: bench bench-check
bench:
	$(CARGO) run --release -p rocm-device-map-cli -- bench

# Short runs, since a run counts only where no other work kept its two threads from running at once: on a busy machine few
# are long and undisturbed. Where that machine was too busy throughout it is measured again a little later, twice at most; a
# library that is too slow fails each time.
BENCH_LEAST = 20
bench-check:
	@$(CARGO) build --quiet --release -p rocm-device-map-cli
	@for attempt in 1 2 3; do \
	  RDM_DRIVER=sim $(CARGO) run --quiet --release -p rocm-device-map-cli -- bench lookups --threads 2 --rounds 25 \
	    --round-ms 1 --check-ratio lookups=$(BENCH_LEAST) && exit 0; \
	  sleep 3; \
	done; exit 1

FORMATTED += $(sort $(wildcard benches/*.[ch] benches/baselines/*.[ch] benches/cases/*.[ch]))
VERIFY_ROCM += bench-check
