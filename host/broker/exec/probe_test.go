package execbroker_test

// probeWord makes the test's program the probe, which does as a command what a test wants.
const probeWord = "probe-the-network"
