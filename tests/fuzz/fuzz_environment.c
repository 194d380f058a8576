/*
 * The environment variables. An input's first byte chooses one, and the rest is its text. What the library makes of it
 * is compared with what a second, simple reader makes of it.
 */
#include "fuzz_environment.h"

#include "cache_folder.h"
#include "cache_store.h"
#include "environment.h"
#include "fuzz.h"
#include "rocm_device_map.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static atomic_uint log_lines;

unsigned environment_take_log_lines(void) {
  return atomic_exchange(&log_lines, 0);
}

static void count_line(rdm_log_level level, const char *message, void *user_data) {
  (void)level, (void)user_data;
  FUZZ_CHECK(strchr(message, '\0')[-1] != '\n', "a log line has its newline: %s", message);
  atomic_fetch_add(&log_lines, 1);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc, (void)argv;
  static const char *const variables[] = {"RDM_WATCHDOG_SECS",    "RDM_EVENT_BLOCKING", "RDM_SIM_FAULT_SCOPE",
                                          "RDM_SIM_LAST_ERROR",   "RDM_SIM_INJECT",     "RDM_SIM_SERIAL_COMPILER",
                                          "RDM_CACHE_MAX_BYTES",  "RDM_CACHE_DIR",      "HIP_VISIBLE_DEVICES",
                                          "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES"};
  for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) unsetenv(variables[i]);
  rdm_set_log_handler(count_line, NULL, RDM_LOG_WARNING);
  setenv("RDM_DRIVER", "sim", 1);
  setenv("RDM_SIM_DEVICES", "2", 1);
  /* Loads the driver, so that an index that it has not is told with the masks that are set. */
  int32_t count = 0;
  FUZZ_CHECK(rdm_device_count(&count) == RDM_OK && count == 2, "the simulated driver has %d devices", count);
  return 0;
}

bool environment_expect_number(const char *text, uint64_t *out_value) {
  static const char largest[] = "18446744073709551615";
  if (text[0] == '\0' || text[strspn(text, "0123456789")] != '\0') return false;
  while (text[0] == '0' && text[1] != '\0') text++;
  size_t length = strlen(text);
  if (length > sizeof largest - 1 || (length == sizeof largest - 1 && strcmp(text, largest) > 0)) return false;
  *out_value = strtoull(text, NULL, 10);
  return true;
}

static void fuzz_number_text(const char *text) {
  uint64_t expected = 0;
  uint64_t value = 77;
  bool is_number = environment_expect_number(text, &expected);
  FUZZ_CHECK(rdm__parse_whole_number(text, &value) == is_number, "\"%s\" is %s number", text, is_number ? "a" : "no");
  FUZZ_CHECK(value == (is_number ? expected : 77), "\"%s\" is %llu", text, (unsigned long long)value);
}

static void fuzz_limit(const char *text) {
  uint64_t expected = UINT64_C(1) << 30;
  environment_expect_number(text, &expected);
  setenv("RDM_CACHE_MAX_BYTES", text, 1);
  uint64_t limit = rdm__cache_limit_bytes();
  unsetenv("RDM_CACHE_MAX_BYTES");
  FUZZ_CHECK(limit == expected, "RDM_CACHE_MAX_BYTES=\"%s\" is %llu", text, (unsigned long long)limit);
}

/* The variable that decides, and what is put behind it. */
static void fuzz_folder(unsigned which, const char *text) {
  static const char *const variables[] = {"RDM_CACHE_DIR", "XDG_CACHE_HOME", "HOME"};
  static const char *const behind[] = {"", "/rocm-device-map", "/.cache/rocm-device-map"};
  which %= 3;
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  setenv(variables[which], text, 1);
  char found[4096];
  memset(found, 0xaa, sizeof found);
  bool is_folder = rdm__cache_folder_path(found, sizeof found);
  unsetenv(variables[which]);
  size_t length = strlen(text) + strlen(behind[which]);
  bool expected = text[0] == '/' && length < sizeof found;
  FUZZ_CHECK(memchr(found, '\0', sizeof found) != NULL, "the folder's path has no end");
  FUZZ_CHECK(is_folder == expected, "%s=\"%s\" gives %s folder", variables[which], text, is_folder ? "a" : "no");
  if (!is_folder) {
    FUZZ_CHECK(found[0] != '\0' && found[0] != '/', "%s=\"%s\" is refused without a reason", variables[which], text);
    return;
  }
  FUZZ_CHECK(strlen(found) == length && strncmp(found, text, strlen(text)) == 0 &&
                 strcmp(found + strlen(text), behind[which]) == 0,
             "%s=\"%s\" gives \"%s\"", variables[which], text, found);
}

static void ignore_attempt(const char *name, const char *result, int32_t used, void *user_data) {
  (void)name, (void)result, (void)used, (void)user_data;
}

static void fuzz_driver(const char *text) {
  bool is_known = text[0] == '\0' || strcmp(text, "hip") == 0 || strcmp(text, "cuda") == 0 || strcmp(text, "sim") == 0;
  int32_t count = -1;
  setenv("RDM_DRIVER", text, 1);
  rdm_status status = rdm_probe_driver("sim", &count);
  setenv("RDM_DRIVER", "sim", 1);
  FUZZ_CHECK(status == (is_known ? RDM_OK : RDM_ERROR_UNKNOWN_DRIVER), "RDM_DRIVER=\"%s\" is %s", text,
             rdm_status_name(status));
  FUZZ_CHECK(count == (is_known ? 2 : -1), "RDM_DRIVER=\"%s\" has %d devices", text, count);
  bool is_driver = is_known && text[0] != '\0';
  status = rdm_driver_attempts(text, ignore_attempt, NULL);
  FUZZ_CHECK(status == (is_driver ? RDM_OK : RDM_ERROR_UNKNOWN_DRIVER), "the driver \"%s\" is %s", text,
             rdm_status_name(status));
}

static void fuzz_device_count(const char *text) {
  uint64_t expected = 2;
  bool is_valid = text[0] == '\0' || (environment_expect_number(text, &expected) && expected <= 64);
  int32_t count = -1;
  setenv("RDM_SIM_DEVICES", text, 1);
  rdm_status status = rdm_probe_driver("sim", &count);
  setenv("RDM_SIM_DEVICES", "2", 1);
  FUZZ_CHECK(status == (is_valid ? RDM_OK : RDM_ERROR_INVALID_ARGUMENT), "RDM_SIM_DEVICES=\"%s\" is %s", text,
             rdm_status_name(status));
  FUZZ_CHECK(count == (is_valid ? (int32_t)expected : -1), "RDM_SIM_DEVICES=\"%s\" is %d", text, count);
}

/* An error about an index names every mask that is set, and of each the first 64 bytes. */
static void fuzz_masks(fuzz_input *input) {
  static const char *const variables[] = {"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES",
                                          "GPU_DEVICE_ORDINAL"};
  uint8_t chosen = fuzz_byte(input);
  char expected[1024] = "(valid: 0 to 1)";
  size_t length = strlen(expected);
  for (int i = 0; i < 4; i++) {
    if ((chosen & 1U << i) == 0) continue;
    char *text = fuzz_line_as_text(input);
    setenv(variables[i], text, 1);
    bool is_first = (chosen & ((1U << i) - 1)) == 0;
    length += (size_t)snprintf(expected + length, sizeof expected - length, "%s%s=\"%.64s\"",
                               is_first ? "; set here: " : ", ", variables[i], text);
    free(text);
  }
  rdm_device device = {5};
  rdm_status status = rdm_device_get(2, &device);
  for (int i = 0; i < 4; i++) unsetenv(variables[i]);
  FUZZ_CHECK(status == RDM_ERROR_INVALID_DEVICE && device.bits == 5, "device 2 of 2 is %s", rdm_status_name(status));
  const char *found = strstr(rdm_last_error_message(), "(valid");
  FUZZ_CHECK(found != NULL && strcmp(found, expected) == 0, "the message ends with %s and not with %s", found,
             expected);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_input input = {.at = data, .end = data + size};
  uint8_t choice = fuzz_byte(&input);
  if (choice % 10 == 0) {
    fuzz_masks(&input);
    return 0;
  }
  char *text = fuzz_rest_as_text(&input);
  switch (choice % 10) {
    case 1:
      fuzz_number_text(text);
      break;
    case 2:
      fuzz_limit(text);
      break;
    case 3:
      fuzz_folder(choice / 10U, text);
      break;
    case 4:
      fuzz_driver(text);
      break;
    case 5:
      fuzz_device_count(text);
      break;
    case 6:
      environment_fuzz_watchdog(text);
      break;
    case 7:
      environment_fuzz_blocking(text);
      break;
    case 8:
      environment_fuzz_choice(choice / 10U, text);
      break;
    default:
      environment_fuzz_injections(text);
      break;
  }
  free(text);
  return 0;
}
