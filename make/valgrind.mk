# Valgrind's memcheck: reads of what was never written, which no sanitizer of gcc finds, and every leak.

#: test-c-valgrind       memcheck on the short C tests; also test-c-valgrind-long

# Plain code with frames that can be told apart, and tests that know how slow they are.
FLAGS_valgrind = -O1 -g1 -fno-omit-frame-pointer -DTEST_SLOWDOWN=10

VALGRIND_PROGRAMS = stress bad_input concurrency module_cache sim_driver_test driver_conformance wait

$(eval $(call variant_rules,valgrind))
$(foreach program,$(VALGRIND_PROGRAMS),$(eval $(call program_rules,valgrind,$(program))))

.PHONY: test-c-valgrind test-c-valgrind-long build-valgrind
build-valgrind: $(VALGRIND_PROGRAMS:%=$(BUILD)/valgrind/%)

test-c-valgrind test-c-valgrind-long: test-c-valgrind%:
	@$(MAKE) --no-print-directory -j$(JOBS) build-valgrind
	tests/c/valgrind.sh $(BUILD)/valgrind $(if $*,long,short)

VERIFY_ROCM += test-c-valgrind
VERIFY_LONG += test-c-valgrind-long
