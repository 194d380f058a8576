# Each invariant of the library taken away once: a test has to fail for each.
#: mutants        takes each invariant of the library away once, and needs a test to fail; MUTANTS=name... selects

.PHONY: mutants
mutants:
	CC='$(CC)' CXX='$(CXX)' python3 tests/mutants/run.py --folder '$(abspath $(BUILD))/mutants' --jobs $(JOBS) $(MUTANTS)

VERIFY_LONG += mutants
