#: peers          other libraries at the same work on the same GPU, beside ours, in one run (an NVIDIA GPU is needed)
#: peers-check    the same run on the simulated driver, briefly: that it measures, checks and adds up
.PHONY: peers peers-check
peers:
	benches/peers/run.sh $(BUILD)/peers.json

# Without the peers that need a GPU, wherever it runs: what is looked at is our own part and the adding up.
peers-check:
	@mkdir -p $(BUILD)/peers
	@CUDA_HOME=/nonexistent CUDARC= RDM_DRIVER=sim BUILD=$(BUILD)/peers LIBRARY_BUILD=$(abspath $(BUILD)) \
	  ROUNDS=2 SECONDS_EACH=0.02 THREADS=1,2 JOBS=$(JOBS) CXX='$(CXX)' \
	  benches/peers/run.sh $(BUILD)/peers/check.json > $(BUILD)/peers/check.log || \
	  { cat $(BUILD)/peers/check.log; exit 1; }
	@python3 benches/peers/peers_test.py
	@tail -n 1 $(BUILD)/peers/check.log

FORMATTED += $(sort $(wildcard benches/peers/*.hpp benches/peers/*.cpp benches/peers/*.cu))
VERIFY_ROCM += peers-check
