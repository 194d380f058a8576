#include "report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_PLACES = 4096, LAST_STEPS = 150, PLACE_BYTES = 160 };

/* ---- Choices as text -------------------------------------------------------------------------------------------- */

void report_choices(char *text, uint32_t size) {
  uint32_t count = the_record->choice_count;
  while (count > 0 && the_record->choices[count - 1].chosen == 0) count--;
  uint32_t length = 0;
  text[0] = '\0';
  for (uint32_t i = 0; i < count && length < size;) {
    uint32_t zeros = 0;
    while (i < count && the_record->choices[i].chosen == 0) zeros++, i++;
    const char *comma = length > 0 ? "," : "";
    if (zeros > 0) length += (uint32_t)snprintf(text + length, size - length, "%s0*%" PRIu32, comma, zeros);
    if (i == count || length >= size) break;
    length += (uint32_t)snprintf(text + length, size - length, "%s%u", length > 0 ? "," : "",
                                 (unsigned)the_record->choices[i++].chosen);
  }
}

bool report_parse_choices(const char *text, uint8_t *choices, uint32_t *out_count) {
  uint32_t count = 0;
  while (*text != '\0') {
    char *end = NULL;
    unsigned long value = strtoul(text, &end, 10);
    unsigned long times = 1;
    if (end == text) return false;
    if (*end == '*') {
      text = end + 1;
      times = strtoul(text, &end, 10);
      if (end == text) return false;
    }
    if (value >= MOST_THREADS || times > MOST_CHOICES - count) return false;
    for (unsigned long i = 0; i < times; i++) choices[count++] = (uint8_t)value;
    if (*end == ',') end++;
    text = end;
  }
  *out_count = count;
  return true;
}

/* ---- Places in the code ----------------------------------------------------------------------------------------- */

static struct {
  uintptr_t address;
  char text[PLACE_BYTES];
} places[MOST_PLACES];
static int place_count;

static int place_of(uintptr_t address) {
  int i = 0;
  while (i < place_count && places[i].address != address) i++;
  if (i == MOST_PLACES) return 0;
  if (i == place_count) places[place_count++].address = address;
  return i;
}

/* "function file:line" for every address that was asked for, by the system's addr2line. */
static void name_places(void) {
  char self[512];
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length < 0) return;
  self[length] = '\0';
  for (int begin = 0; begin < place_count; begin += 64) {
    char command[4096];
    int used = snprintf(command, sizeof command, "addr2line -f -s -e '%s'", self);
    int end = begin + 64 < place_count ? begin + 64 : place_count;
    for (int i = begin; i < end; i++) {
      /* The call, not what it returns to. */
      used += snprintf(command + used, sizeof command - (size_t)used, " %#zx", (size_t)(places[i].address - 1));
    }
    FILE *names = popen(command, "r");
    for (int i = begin; names != NULL && i < end; i++) {
      char function[PLACE_BYTES] = "";
      char line[PLACE_BYTES] = "";
      if (fgets(function, sizeof function, names) == NULL || fgets(line, sizeof line, names) == NULL) break;
      function[strcspn(function, "\n")] = '\0';
      line[strcspn(line, " \n")] = '\0';
      snprintf(places[i].text, sizeof places[i].text, "%.70s %.80s", function, line);
    }
    if (names != NULL) pclose(names);
  }
}

/* The scheduler's own files and the lock layer say nothing to a reader. */
static bool says_something(const char *text) {
  static const char *const hidden[] = {" engine.c", " locks.c", " atomics.c", " system.c", " accesses.c",
                                       " races.c",  " lock.c",  "driver.c",   "??"};
  for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++) {
    if (strstr(text, hidden[i]) != NULL) return false;
  }
  return true;
}

static void print_frames(const uintptr_t *frames, int most) {
  int printed = 0;
  for (int i = 0; i < MOST_FRAMES && printed < most; i++) {
    if (frames[i] == 0) continue;
    const char *text = places[place_of(frames[i])].text;
    if (!says_something(text)) continue;
    printf("%s%s", printed++ > 0 ? " < " : "", text);
  }
}

static void collect(const uintptr_t *frames) {
  for (int i = 0; i < MOST_FRAMES; i++) {
    if (frames[i] != 0) place_of(frames[i]);
  }
}

/* Addresses in a message are written @0x...: as places, once they have names. */
static void walk_message(bool print) {
  for (const char *at = the_record->message; *at != '\0'; at++) {
    if (*at != '@') {
      if (print) putchar(*at);
      continue;
    }
    char *end = NULL;
    uintptr_t address = (uintptr_t)strtoull(at + 1, &end, 16);
    int place = address != 0 ? place_of(address) : 0;
    if (print && address != 0 && places[place].text[0] != '\0') printf("[%s]", places[place].text);
    at = end - 1;
  }
}

void report_failure(const scenario *scenario, const char *found_by) {
  static char choices[16384];
  report_choices(choices, sizeof choices);
  uint32_t first = the_record->step_count > LAST_STEPS ? the_record->step_count - LAST_STEPS : 0;
  collect(the_record->frames);
  walk_message(false);
  for (uint32_t i = first; i < the_record->step_count; i++) collect(the_record->steps[i].frames);
  name_places();
  printf("FAILED %s (found by %s)\n", scenario->name, found_by);
  walk_message(true);
  printf("\n  at ");
  print_frames(the_record->frames, MOST_FRAMES);
  printf("\nThe schedule, %" PRIu32 " steps%s:\n", the_record->step_count, first > 0 ? ", the last of them" : "");
  for (uint32_t i = first; i < the_record->step_count; i++) {
    const step *step = &the_record->steps[i];
    printf("%5" PRIu32 "  thread %u  %-24s %-14p %s ", i, (unsigned)step->thread,
           schedule_point_text((point_kind)step->kind), step->object, step->name != NULL ? step->name : "");
    print_frames(step->frames, 3);
    putchar('\n');
  }
  printf("To see it again: schedules --replay %s '%s'\n", scenario->name, choices[0] != '\0' ? choices : "0");
  fflush(stdout);
}
