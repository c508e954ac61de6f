//go:build race

package main

// overtimePeople is how many people TestCodeTasks has: fewer under the race detector, which needs 20 s for 300.
const overtimePeople = 120
