//go:build race

package main

// overtimePeople is the number of people in TestCodeTasks: fewer under the race detector, which needs 20 s for 300.
const overtimePeople = 120
