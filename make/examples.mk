# The examples in C and C++; the one in Rust is run by cargo test.

#: examples       the C++ overlay, also under the thread sanitizer, and raw HIP code that shares streams and events

EXAMPLES = $(BUILD)/examples
EXAMPLE_PROGRAMS = $(EXAMPLES)/overlay $(EXAMPLES)/overlay_tsan $(EXAMPLES)/raw_hip_on_driver
# Linking with AMD's runtime needs it; compiling needs its headers alone, which test-headers needs as well.
EXAMPLE_HIP := $(shell echo 'int main(void) { return (int)hipInit(0); }' | $(CC) -D__HIP_PLATFORM_AMD__ \
  -include hip/hip_runtime_api.h -xc - -o /dev/null -lamdhip64 2> /dev/null && echo $(EXAMPLES)/raw_hip)
EXAMPLE_HIP_FLAGS = -D__HIP_PLATFORM_AMD__

.PHONY: examples examples-build
examples:
	@$(MAKE) --no-print-directory -j$(JOBS) examples-build
	tests/examples/run.sh $(EXAMPLES)

examples-build: $(EXAMPLE_PROGRAMS) $(EXAMPLE_HIP)

# $(1): program, $(2): variant. With the public header and nothing else of the library, as an overlay is built.
define overlay_rules
$(EXAMPLES)/$(1): $(wildcard examples/overlay/*) $(LIBRARY_OBJECTS_$(2))
	@mkdir -p $$(@D)
	@echo 'examples: $$(@F)'
	$$(QUIET)$$(CXX) -std=c++17 -Wall -Wextra -Werror -Wpedantic $$(FLAGS_$(2)) -pthread -Icsrc/include \
	  examples/overlay/*.cpp $$(filter %.o,$$^) -o $$@ $$(LIBRARIES)
endef
$(eval $(call overlay_rules,overlay,lib))
$(eval $(call overlay_rules,overlay_tsan,tsan))

$(EXAMPLES)/raw_hip: examples/raw_hip.c $(STATIC_LIBRARY)
	@mkdir -p $(@D)
	@echo 'examples: $(@F)'
	$(QUIET)$(CC) $(CFLAGS) $(FLAGS_lib) $(EXAMPLE_HIP_FLAGS) -Icsrc/include $^ -o $@ -lamdhip64 $(LIBRARIES)

$(EXAMPLES)/raw_hip_on_driver: examples/raw_hip.c tests/examples/hip_on_driver.c $(STATIC_LIBRARY)
	@mkdir -p $(@D)
	@echo 'examples: $(@F)'
	$(QUIET)$(CC) $(CFLAGS) $(FLAGS_plain) $(EXAMPLE_HIP_FLAGS) -DRAW_HIP_DRIVER=NULL $(INCLUDES) $^ -o $@ $(LIBRARIES)

FORMATTED += $(sort $(wildcard examples/*.c examples/overlay/*))
VERIFY_ROCM += examples
