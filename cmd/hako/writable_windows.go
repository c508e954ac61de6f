package main

// checkAccess finds nothing: Windows tells only by making a file.
func checkAccess(string) error { return nil }
