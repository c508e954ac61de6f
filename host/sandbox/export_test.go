package sandbox

// Decode is for tests.
var Decode = decode
