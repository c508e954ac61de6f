//go:build !race

package main

// overtimePeople is how many people TestCodeTasks has.
const overtimePeople = 300
