package execbroker_test

// probeWord is the first argument that makes the test binary act as the probe program, which commands of the tests run.
const probeWord = "probe-the-network"
