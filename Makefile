# Builds and checks the C library by itself, and runs everything that has to hold before a change lands.
# `make help` lists the targets. The Rust crate is built by cargo, which needs none of this.

CC ?= gcc
CXX ?= g++
CARGO ?= cargo
CLANG_FORMAT ?= clang-format
JOBS ?= 2
BUILD ?= build
# V=1 shows the compiler's command lines.
QUIET := $(if $(V),,@)

ifeq ($(origin CC),default)
CC := gcc
endif
ifeq ($(origin CXX),default)
CXX := $(if $(findstring clang,$(CC)),clang++,g++)
endif

CFLAGS = -std=c11 -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Werror -fvisibility=hidden -pthread \
  -DRDM_DRIVER_HIP -DRDM_DRIVER_CUDA
INCLUDES = -Icsrc -Icsrc/include
LIBRARIES = -pthread -ldl -lm

# What each variant adds. Those that test keep the assertions; the library that is installed does not.
FLAGS_lib = -O2 -g -DNDEBUG
FLAGS_plain = -O2 -g
FLAGS_tsan = -O1 -g -fno-omit-frame-pointer -fsanitize=thread
FLAGS_asan = -O1 -g -fno-omit-frame-pointer -fsanitize=address
FLAGS_ubsan = -O1 -g -fno-omit-frame-pointer -fsanitize=undefined -fno-sanitize-recover=all

LIBRARY_SOURCES := $(sort $(wildcard csrc/*.c csrc/driver/*.c csrc/driver/sim/*.c))

# The test programs, and what each is made of.
PROGRAMS = stress bad_input concurrency sim_driver_test driver_conformance module_cache injection wait other_code_test \
  cuda_context_test
SOURCES_harness = test process work calls expect log_lines
SOURCES_stress = stress work
SOURCES_bad_input = $(basename $(notdir $(wildcard tests/c/bad_input*.c))) $(SOURCES_harness)
SOURCES_module_cache = $(basename $(notdir $(wildcard tests/c/module_cache*.c))) $(SOURCES_harness) other_code
SOURCES_concurrency = $(basename $(notdir $(wildcard tests/c/concurrency*.c))) $(SOURCES_harness) other_code capture_work
SOURCES_injection = $(basename $(notdir $(wildcard tests/c/injection*.c))) $(SOURCES_harness)
SOURCES_other_code_test = other_code_test other_code capture_work $(SOURCES_harness)
SOURCES_wait = $(basename $(notdir $(wildcard tests/c/wait*.c))) $(SOURCES_harness)
SOURCES_cuda_context_test = cuda_context_test $(SOURCES_harness)
SOURCES_exit_process = exit_process $(SOURCES_harness)
SOURCES_sim_driver_test = $(basename $(notdir $(wildcard tests/c/sim_driver_test*.c)))
SOURCES_driver_conformance = $(basename $(notdir $(wildcard tests/c/driver_conformance.c tests/c/conformance*.c)))

STATIC_LIBRARY = $(BUILD)/librocm_device_map.a
SHARED_LIBRARY = $(BUILD)/librocm_device_map.so
# The header's version, as "0 1 0".
VERSION_NUMBERS := $(shell sed -n 's/^\#define RDM_VERSION_[MP][A-Z]* \([0-9]*\)$$/\1/p' csrc/include/rocm_device_map.h)
VERSION := $(subst $(eval) ,.,$(VERSION_NUMBERS))
SONAME = librocm_device_map.so.$(firstword $(VERSION_NUMBERS))

FORMATTED := $(sort $(shell find csrc tests -name '*.[ch]' -o -name '*.cpp'))

.PHONY: help lib test-c test-c-tsan test-c-asan test-c-ubsan test-headers test-abi test-hip format-check verify-rocm \
  verify-long clean

help:
	@echo 'lib            $(STATIC_LIBRARY) and $(SHARED_LIBRARY)'
	@echo 'test-c         the C tests on the simulated driver; also test-c-tsan, test-c-asan, test-c-ubsan'
	@echo 'test-abi       the header as C11 and C++17, a C++17 program, and the symbols that leave the library'
	@echo "test-headers   our prototypes and layouts against AMD's own headers"
	@echo "test-hip       the hip driver against AMD's own runtime, without a GPU (libamdhip64 must be installed)"
	@echo 'format-check   clang-format on all C and C++'
	@echo 'verify-rocm    everything that has to hold before a change lands'
	@echo 'verify-long    the same races for longer'
	@sed -n 's/^#: //p' /dev/null $(sort $(wildcard make/*.mk))
	@echo 'clean          removes $(BUILD)'
	@echo
	@echo 'CC=clang uses clang; BUILD=folder builds elsewhere; JOBS=n compiles n files at once (now $(JOBS));'
	@echo "V=1 shows the compiler's command lines."

# ---- Compiling -------------------------------------------------------------------------------------------------------

# $(1): variant. A change of the compiler or of its flags rebuilds everything of the variant.
define variant_rules
$(BUILD)/$(1)/flags: FORCE
	@mkdir -p $$(@D)
	@echo '$$(CC) $$(CFLAGS) $$(FLAGS_$(1))' | cmp -s - $$@ || echo '$$(CC) $$(CFLAGS) $$(FLAGS_$(1))' > $$@

$(BUILD)/$(1)/%.o: %.c $(BUILD)/$(1)/flags
	@mkdir -p $$(@D)
	@echo '$(1): $$<'
	$$(QUIET)$$(CC) $$(CFLAGS) $$(FLAGS_$(1)) -fPIC $$(INCLUDES) -MMD -MP -c $$< -o $$@

LIBRARY_OBJECTS_$(1) = $$(LIBRARY_SOURCES:%.c=$(BUILD)/$(1)/%.o)

-include $$(LIBRARY_OBJECTS_$(1):.o=.d) $(wildcard $(BUILD)/$(1)/tests/c/*.d)
endef

# $(1): variant, $(2): program.
define program_rules
$(BUILD)/$(1)/$(2): $$(SOURCES_$(2):%=$(BUILD)/$(1)/tests/c/%.o) $$(LIBRARY_OBJECTS_$(1))
	@echo '$(1): $(2)'
	$$(QUIET)$$(CC) $$(CFLAGS) $$(FLAGS_$(1)) $$^ -o $$@ $$(LIBRARIES)
endef

$(foreach variant,lib plain tsan asan ubsan,$(eval $(call variant_rules,$(variant))))
$(foreach variant,plain tsan asan ubsan,$(foreach program,$(PROGRAMS),$(eval \
  $(call program_rules,$(variant),$(program)))))

# The one program with C++ in it, whose statics and thread-locals own things of the library.
# $(1): variant.
define exit_process_rules
$(BUILD)/$(1)/tests/c/exit_statics.o: tests/c/exit_statics.cpp tests/c/exit_process.h $(BUILD)/$(1)/flags
	@mkdir -p $$(@D)
	$$(QUIET)$$(CXX) -std=c++17 -Wall -Wextra -Wpedantic -Werror -pthread $$(FLAGS_$(1)) $$(INCLUDES) -c $$< -o $$@

$(BUILD)/$(1)/exit_process: $$(SOURCES_exit_process:%=$(BUILD)/$(1)/tests/c/%.o) \
  $(BUILD)/$(1)/tests/c/exit_statics.o $$(LIBRARY_OBJECTS_$(1))
	@echo '$(1): exit_process'
	$$(QUIET)$$(CXX) -pthread $$(FLAGS_$(1)) $$^ -o $$@ $$(LIBRARIES)
endef

$(foreach variant,plain tsan asan ubsan,$(eval $(call exit_process_rules,$(variant))))

.PHONY: FORCE
FORCE:

# The objects of the C tests are kept, so that a rebuild compiles only what changed.
.SECONDARY:

# ---- The library -----------------------------------------------------------------------------------------------------

lib: $(STATIC_LIBRARY) $(SHARED_LIBRARY)

$(STATIC_LIBRARY): $(LIBRARY_OBJECTS_lib)
	@rm -f $@
	@echo 'lib: $(@F)'
	$(QUIET)$(AR) rcs $@ $^

# Never unloaded: threads of the runtime may still be inside it. Nothing undefined but what the system has.
$(SHARED_LIBRARY).$(VERSION): $(LIBRARY_OBJECTS_lib) $(BUILD)/rocm_device_map.map
	@echo 'lib: $(@F)'
	$(QUIET)$(CC) -shared -Wl,-soname,$(SONAME) -Wl,-z,nodelete -Wl,-z,defs -Wl,--version-script=$(lastword $^) \
	  $(LIBRARY_OBJECTS_lib) -o $@ $(LIBRARIES)

# The loader's name and the linker's, each a link.
$(SHARED_LIBRARY): $(SHARED_LIBRARY).$(VERSION)
	@ln -sf $(<F) $(@D)/$(SONAME)
	@ln -sf $(SONAME) $@

# Which symbols leave it, each with the version that it came with.
$(BUILD)/rocm_device_map.map: $(wildcard abi/symbols.txt) abi/symbol_versions.sh abi/version_script.sh abi/common.sh \
  csrc/include/rocm_device_map.h
	@mkdir -p $(@D)
	$(QUIET)abi/version_script.sh abi/symbols.txt csrc/include > $@.new
	@mv $@.new $@

# ---- Tests in C ------------------------------------------------------------------------------------------------------

.PHONY: build-plain build-tsan build-asan build-ubsan
build-plain build-tsan build-asan build-ubsan: build-%: $(addprefix $(BUILD)/%/,$(PROGRAMS) exit_process)

test-c: VARIANT = plain
test-c-tsan: VARIANT = tsan
test-c-asan: VARIANT = asan
test-c-ubsan: VARIANT = ubsan
test-c test-c-tsan test-c-asan test-c-ubsan:
	@$(MAKE) --no-print-directory -j$(JOBS) build-$(VARIANT)
	tests/c/run.sh $(BUILD)/$(VARIANT)

# In how many fresh processes the shared library is unloaded while it is in use.
UNLOAD_RUNS = 20

test-abi: lib
	tests/c/check_header.sh $(CC) $(CXX) $(BUILD)
	tests/c/check_symbols.sh $(STATIC_LIBRARY) $(SHARED_LIBRARY)
	tests/c/check_unload.sh $(CC) $(BUILD) $(UNLOAD_RUNS)

test-headers:
	CC='$(CC)' tests/headers/check.sh $(BUILD)/headers

test-hip:
	@$(MAKE) --no-print-directory -j$(JOBS) $(BUILD)/plain/driver_conformance $(STATIC_LIBRARY)
	CC='$(CC)' tests/c/loader_test.sh $(BUILD)/loader
	CC='$(CC)' tests/c/permission_test.sh $(BUILD)/permission
	tests/c/exit_order.sh $(CC) $(STATIC_LIBRARY) $(BUILD)/exit_order
	CC='$(CC)' tests/c/hip_runtime_test.sh $(BUILD)/hip
	$(BUILD)/plain/driver_conformance hip

format-check:
	@$(CLANG_FORMAT) --dry-run -Werror $(FORMATTED)

# ---- All of it -------------------------------------------------------------------------------------------------------

CONCURRENCY_TEST = rocm_device_map_concurrency
CONCURRENCY_RUNS = 20

verify-rocm:
	$(CARGO) fmt --all --check
	@$(MAKE) --no-print-directory format-check
	$(CARGO) clippy --workspace --all-targets --all-features -- -D warnings
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps --all-features
	$(CARGO) test --features bindgen --test bindings
	$(CARGO) test -p rocm-device-map-cli --features cuda --test doctor
	@$(MAKE) --no-print-directory concurrency-runs
	@$(MAKE) --no-print-directory fault-tests
	@$(MAKE) --no-print-directory test-abi
	@$(MAKE) --no-print-directory test-headers
	@$(MAKE) --no-print-directory test-c
	@$(MAKE) --no-print-directory test-c-tsan
	@$(MAKE) --no-print-directory test-c-asan
	@$(MAKE) --no-print-directory test-c-ubsan
	@$(MAKE) --no-print-directory test-hip
	@for target in $(VERIFY_ROCM); do $(MAKE) --no-print-directory $$target || exit 1; done
	@echo 'verify-rocm: everything passed'

.PHONY: concurrency-runs
concurrency-runs:
	@for run in $$(seq $(CONCURRENCY_RUNS)); do \
	  echo "$(CONCURRENCY_TEST), run $$run of $(CONCURRENCY_RUNS)"; \
	  RDM_DRIVER=sim $(CARGO) test --quiet --features rocm --test $(CONCURRENCY_TEST) || exit 1; \
	done

# Faults, exits and the table of errors; in verify-long with as many processes as the exits in C.
.PHONY: fault-tests
fault-tests:
	RDM_DRIVER=sim RDM_TEST_LONG=$(RDM_TEST_LONG) $(CARGO) test --quiet --features rocm --test rocm_gpu_faults --test exits \
	  --test errors_table

verify-long: CONCURRENCY_RUNS = 100
verify-long:
	@$(MAKE) --no-print-directory concurrency-runs CONCURRENCY_RUNS=$(CONCURRENCY_RUNS)
	@$(MAKE) --no-print-directory concurrency-runs CONCURRENCY_TEST=rocm_jit_module_concurrency
	RDM_TEST_LONG=1 $(CARGO) test --test disk_cache
	@$(MAKE) --no-print-directory fault-tests RDM_TEST_LONG=1
	@$(MAKE) --no-print-directory test-abi UNLOAD_RUNS=200
	@for variant in plain tsan asan ubsan; do \
	  $(MAKE) --no-print-directory -j$(JOBS) build-$$variant && \
	  tests/c/run.sh $(BUILD)/$$variant long || exit 1; \
	done
	@for target in $(VERIFY_LONG); do $(MAKE) --no-print-directory $$target || exit 1; done
	@echo 'verify-long: everything passed'

# One file for each topic. Each adds its targets to VERIFY_ROCM and VERIFY_LONG, and a line for `make help` after `#: `.
include $(sort $(wildcard make/*.mk))

clean:
	rm -rf $(BUILD)
