#: schedules      schedules of the real code, one thread at a time: docs/schedules.md
#: schedules-long the same for ten minutes; schedule-mutants: what they find where the code is broken

# The product is compiled with the hooks of -fsanitize=thread, and linked with ours in place of the sanitizer's run-time
# library. What it calls of the system's threads, time and memory goes to the scheduler, too.
SCHEDULE_FLAGS = -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -fno-pie
# What a mutant adds.
SCHEDULE_MORE =
SCHEDULE_WRAPPED = pthread_mutex_init pthread_mutex_lock pthread_mutex_trylock pthread_mutex_unlock \
  pthread_rwlock_init pthread_rwlock_rdlock pthread_rwlock_wrlock pthread_rwlock_unlock \
  pthread_cond_init pthread_cond_wait pthread_cond_timedwait pthread_cond_broadcast \
  pthread_create pthread_once pthread_key_create pthread_key_delete pthread_setspecific pthread_getspecific \
  pthread_atfork atexit \
  clock_gettime nanosleep sched_yield malloc calloc free realloc memcpy memmove memset strcmp

# All of the product but its drivers, and the two files that reach into one of them. What is counted decides nothing, and
# a step on a counter that all threads share would make every two steps depend on each other: count.c has no hooks.
SCHEDULE_PRODUCT := $(filter-out csrc/diagnosis.c csrc/sim_control.c,$(sort $(wildcard csrc/*.c))) \
  csrc/driver/driver_error.c
$(BUILD)/schedule/csrc/count.o: private SCHEDULE_HOOKS =
SCHEDULE_HOOKS = -fsanitize=thread
SCHEDULE_OBJECTS = $(SCHEDULE_PRODUCT:%.c=$(BUILD)/schedule/%.o) \
  $(patsubst %.c,$(BUILD)/schedule/%.o,$(sort $(wildcard tests/c/schedule/*.c)))

$(BUILD)/schedule/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(CFLAGS) $(SCHEDULE_FLAGS) $(SCHEDULE_MORE)' | cmp -s - $@ || echo '$(CC) $(CFLAGS) $(SCHEDULE_FLAGS) $(SCHEDULE_MORE)' > $@

$(BUILD)/schedule/csrc/%.o: csrc/%.c $(BUILD)/schedule/flags
	@mkdir -p $(@D)
	@echo 'schedule: $<'
	$(QUIET)$(CC) $(CFLAGS) $(SCHEDULE_FLAGS) $(SCHEDULE_MORE) $(SCHEDULE_HOOKS) $(INCLUDES) -MMD -MP -c $< -o $@

$(BUILD)/schedule/tests/%.o: tests/%.c $(BUILD)/schedule/flags
	@mkdir -p $(@D)
	@echo 'schedule: $<'
	$(QUIET)$(CC) $(CFLAGS) $(SCHEDULE_FLAGS) $(INCLUDES) -MMD -MP -c $< -o $@

$(BUILD)/schedule/schedules: $(SCHEDULE_OBJECTS)
	@echo 'schedule: $(@F)'
	$(QUIET)$(CC) -no-pie $(SCHEDULE_WRAPPED:%=-Wl,--wrap=%) $^ -o $@ $(LIBRARIES)

-include $(SCHEDULE_OBJECTS:.o=.d)

# Counts, so that what is covered does not depend on the machine; the time is for one that is very busy.
SCHEDULES = --full 1000 --bound 1 --schedules 20 --seconds 45

.PHONY: schedules schedules-long schedule-mutants
schedules:
	@$(MAKE) --no-print-directory -j$(JOBS) $(BUILD)/schedule/schedules
	$(BUILD)/schedule/schedules $(SCHEDULES)
	@$(MAKE) --no-print-directory schedule-mutants

schedule-mutants:
	@$(MAKE) --no-print-directory -j$(JOBS) $(BUILD)/schedule/schedules
	CC='$(CC)' JOBS=$(JOBS) tests/c/schedule/prove.sh $(BUILD)

schedules-long:
	@$(MAKE) --no-print-directory schedules \
	  SCHEDULES='--full 100000 --bound 2 --schedules 1000000 --seconds 600'

VERIFY_ROCM += schedules
VERIFY_LONG += schedules-long
