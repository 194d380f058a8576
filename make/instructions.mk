#: instruction-counts   what each hot path takes, counted by callgrind, against benches/instructions/counts.json
#: instruction-counts-update   writes that file anew
.PHONY: instruction-counts instruction-counts-update
instruction-counts: INSTRUCTIONS_ACTION = check
instruction-counts-update: INSTRUCTIONS_ACTION = update
instruction-counts instruction-counts-update:
	@$(MAKE) --no-print-directory -j$(JOBS) $(BUILD)/lib/hot_paths
	@benches/instructions/counts.py $(INSTRUCTIONS_ACTION) $(BUILD)/lib/hot_paths benches/instructions/counts.json \
	  "$(notdir $(CC)) $$($(CC) -dumpfullversion)"

# The library as it is installed, but for which driver it takes.
STUB_OBJECTS = $(patsubst %,$(BUILD)/lib/benches/instructions/%.o,stub_driver stub_select)
WITHOUT_SELECT = $(filter-out %/driver/select.o,$(LIBRARY_OBJECTS_lib))
$(BUILD)/lib/benches/instructions/%.o: INCLUDES += -Ibenches/instructions

$(BUILD)/lib/hot_paths: $(BUILD)/lib/benches/instructions/hot_paths.o $(STUB_OBJECTS) $(WITHOUT_SELECT)
	@echo 'lib: $(@F)'
	$(QUIET)$(CC) $(CFLAGS) $(FLAGS_lib) $^ -o $@ $(LIBRARIES)

-include $(wildcard $(BUILD)/lib/benches/instructions/*.d)
FORMATTED += $(sort $(wildcard benches/instructions/*.[ch]))
VERIFY_ROCM += instruction-counts
