# Line and branch coverage of csrc/, as the library is compiled for use: without assertions.

#: coverage       what of csrc/ the C tests run, by lines and by branches; docs/coverage.md has the reasons for the rest

# Below these, in percent, `make coverage` fails.
COVERAGE_LINES = 88
COVERAGE_BRANCHES = 74

FLAGS_coverage = -O0 -g -DNDEBUG -DTEST_SLOWDOWN=8 --coverage -fprofile-update=atomic -Wl,--wrap=_exit

$(eval $(call variant_rules,coverage))
LIBRARY_OBJECTS_coverage += $(BUILD)/coverage/tests/coverage/exit.o
$(foreach program,$(PROGRAMS),$(eval $(call program_rules,coverage,$(program))))
$(eval $(call exit_process_rules,coverage))

.PHONY: coverage build-coverage
build-coverage: $(addprefix $(BUILD)/coverage/,$(PROGRAMS) exit_process) $(BUILD)/coverage/librocm_device_map.a

$(BUILD)/coverage/librocm_device_map.a: $(LIBRARY_OBJECTS_coverage)
	@rm -f $@
	$(QUIET)$(AR) rcs $@ $^

coverage:
	@$(MAKE) --no-print-directory -j$(JOBS) build-coverage
	CC='$(CC)' tests/coverage/run.sh $(BUILD)/coverage $(COVERAGE_LINES) $(COVERAGE_BRANCHES)

VERIFY_LONG += coverage
