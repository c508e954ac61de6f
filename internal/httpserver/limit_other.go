//go:build !unix

package httpserver

func connectionLimit() int { return maxConnections }
