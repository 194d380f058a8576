#!/bin/sh
# The compiler, for the test scripts that compile sources of the library themselves, with counts of what runs.
exec "${COVERAGE_CC:-gcc}" --coverage -fprofile-update=atomic "$@"
