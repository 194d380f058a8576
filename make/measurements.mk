#: instruction-counts   what each hot path takes, counted by callgrind, against benches/instructions/counts.json
#: instruction-counts-update   writes that file anew
.PHONY: instruction-counts instruction-counts-update
instruction-counts: INSTRUCTIONS_ACTION = check
instruction-counts-update: INSTRUCTIONS_ACTION = update
instruction-counts instruction-counts-update:
	@$(MAKE) --no-print-directory -j$(JOBS) $(BUILD)/lib/hot_paths
	@benches/instructions/counts.py $(INSTRUCTIONS_ACTION) $(BUILD)/lib/hot_paths benches/instructions/counts.json \
	  "$(notdir $(CC)) $$($(CC) -dumpfullversion 2> /dev/null || $(CC) -dumpversion)"

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

#: growth         memory and cost against how much there is of each thing; growth-long goes to ten million events
.PHONY: growth growth-long growth-build
growth-build:
	@$(MAKE) --no-print-directory -j$(JOBS) $(BUILD)/lib/growth $(BUILD)/lib/growth_modules

GROWTH_OUT = $(BUILD)/growth
growth: growth-build
	@benches/growth/report_test.py
	@benches/growth/report.py --out $(GROWTH_OUT) $(BUILD)/lib/growth $(BUILD)/lib/growth_modules
growth-long: growth-build
	@benches/growth/report.py --out $(GROWTH_OUT) --full $(BUILD)/lib/growth $(BUILD)/lib/growth_modules

GROWTH_SOURCES = growth measure devices threads streams events handles
$(BUILD)/lib/growth: $(GROWTH_SOURCES:%=$(BUILD)/lib/benches/growth/%.o) $(LIBRARY_OBJECTS_lib)
$(BUILD)/lib/growth_modules: $(BUILD)/lib/benches/growth/growth_modules.o $(BUILD)/lib/benches/growth/measure.o \
  $(STUB_OBJECTS) $(WITHOUT_SELECT)
$(BUILD)/lib/growth $(BUILD)/lib/growth_modules:
	@echo 'lib: $(@F)'
	$(QUIET)$(CC) $(CFLAGS) $(FLAGS_lib) $^ -o $@ $(LIBRARIES)

-include $(wildcard $(BUILD)/lib/benches/growth/*.d)
FORMATTED += $(sort $(wildcard benches/growth/*.[ch]))
VERIFY_LONG += growth-long
