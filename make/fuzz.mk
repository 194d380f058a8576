# Fuzzing with libFuzzer (clang, libclang-rt-14-dev).
#
#: fuzz           every fuzz target for FUZZ_SECONDS in all (now 600); a finding fails and its input is kept
#: fuzz-corpus    the kept inputs of every fuzz target, once each
#: fuzz-minimise  takes the inputs that fuzz found into tests/fuzz/corpus, as few as give the same coverage

FUZZ_CC ?= clang
fuzz_comma := ,
FUZZ_SECONDS ?= 600
FUZZ_TARGETS = fuzz_calls fuzz_cache_entry fuzz_environment fuzz_kernel_text
FUZZ_TSAN_TARGETS = fuzz_calls

FLAGS_fuzz = -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
# Threads that count coverage race, and ThreadSanitizer reports it: only what runs between an input's threads and the
# next input's is counted here. What this variant replays and mutates are the inputs that the other one found.
FLAGS_fuzz-tsan = -O1 -g -fno-omit-frame-pointer -fsanitize=thread
$(BUILD)/fuzz-tsan/tests/fuzz/fuzz_calls_end.o: private FLAGS_fuzz-tsan += -fsanitize=fuzzer-no-link

SOURCES_fuzz_calls = fuzz_calls fuzz_calls_check fuzz_calls_handles fuzz_calls_streams fuzz_calls_work fuzz_calls_end
SOURCES_fuzz_cache_entry = fuzz_cache_entry
SOURCES_fuzz_environment = fuzz_environment fuzz_environment_settings fuzz_environment_sim fuzz_environment_injections
SOURCES_fuzz_kernel_text = fuzz_kernel_text

# These are compiled as a part of the target, which looks at what they keep to themselves.
FUZZ_INCLUDED_fuzz_environment = csrc/settings.o csrc/driver/sim/driver_table.o

$(BUILD)/fuzz/% $(BUILD)/fuzz-tsan/%: override CC := $(FUZZ_CC)

$(foreach variant,fuzz fuzz-tsan,$(eval $(call variant_rules,$(variant))))
-include $(wildcard $(BUILD)/fuzz/tests/fuzz/*.d $(BUILD)/fuzz-tsan/tests/fuzz/*.d)

# $(1): variant, $(2): sanitizers, $(3): target.
define fuzz_rules
$(BUILD)/$(1)/$(3): $$(SOURCES_$(3):%=$(BUILD)/$(1)/tests/fuzz/%.o) $(BUILD)/$(1)/tests/fuzz/fuzz.o \
  $$(filter-out $$(FUZZ_INCLUDED_$(3):%=$(BUILD)/$(1)/%),$$(LIBRARY_OBJECTS_$(1)))
	@echo '$(1): $(3)'
	$$(QUIET)$$(CC) -pthread -g -fsanitize=fuzzer,$(2) $$^ -o $$@ $$(LIBRARIES)
endef

$(foreach target,$(FUZZ_TARGETS),$(eval $(call fuzz_rules,fuzz,address$(fuzz_comma)undefined,$(target))))
$(foreach target,$(FUZZ_TSAN_TARGETS),$(eval $(call fuzz_rules,fuzz-tsan,thread,$(target))))

FUZZ_PROGRAMS = $(FUZZ_TARGETS:%=$(BUILD)/fuzz/%) $(FUZZ_TSAN_TARGETS:%=$(BUILD)/fuzz-tsan/%)

.PHONY: build-fuzz fuzz fuzz-corpus fuzz-minimise
build-fuzz: $(FUZZ_PROGRAMS)

fuzz fuzz-corpus fuzz-minimise:
	@$(MAKE) --no-print-directory -j$(JOBS) build-fuzz
	tests/fuzz/run.sh $(@:fuzz-%=%) $(BUILD)/fuzz-inputs $(FUZZ_SECONDS) $(FUZZ_PROGRAMS)

VERIFY_ROCM += fuzz-corpus
VERIFY_LONG += fuzz models-long

# ---- Models ----------------------------------------------------------------------------------------------------------

#: models-long    the models in Rust (cargo test --test models), MODEL_CASES cases for each property
MODEL_CASES ?= 1000

.PHONY: models-long
models-long:
	PROPTEST_CASES=$(MODEL_CASES) RDM_DRIVER=sim $(CARGO) test --quiet --test models
