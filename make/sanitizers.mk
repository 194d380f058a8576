# The Rust tests with the C core built under the sanitizers of gcc.

#: test-rust-sanitizers  the Rust tests with their C part under address (with leaks), undefined and thread

RUST_SANITIZED = bad_input lifetimes rocm_device_map_concurrency rocm_jit_module_concurrency streams waits

.PHONY: test-rust-sanitizers
test-rust-sanitizers:
	@for sanitizer in address undefined thread; do \
	  CC='$(CC)' CARGO='$(CARGO)' tests/sanitizers/rust.sh $$sanitizer $(RUST_SANITIZED) || exit 1; \
	done

VERIFY_LONG += test-rust-sanitizers
