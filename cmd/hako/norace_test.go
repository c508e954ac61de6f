//go:build !race

package main

// overtimePeople is the number of people in TestCodeTasks.
const overtimePeople = 300
