package agent

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
)

// Marks say in the metadata of an agent which of its custom tools are hako's: a hash of each name, one after the other.
// The API allows 16 keys, whose values have at most 512 characters, so that the names themselves would not fit.
const (
	markKey     = "hako_tools_" // and a number from 1 on
	markSize    = 8             // characters, for 48 bits of the hash
	marksPerKey = 512 / markSize
)

func isMark(key string) bool { return strings.HasPrefix(key, markKey) }

// markOf returns the mark of a tool.
func markOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return base64.RawURLEncoding.EncodeToString(sum[:markSize*6/8])
}

// marksOf returns the metadata for tools.
func marksOf(names []string) map[string]string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = markOf(name)
	}
	slices.Sort(list)
	marks := map[string]string{}
	for i, part := range slices.Collect(slices.Chunk(list, marksPerKey)) {
		marks[fmt.Sprint(markKey, i+1)] = strings.Join(part, "")
	}
	return marks
}

// marked returns a function that reports whether a tool is marked.
func marked(metadata map[string]string) func(name string) bool {
	known := map[string]bool{}
	for key, value := range metadata {
		for isMark(key) && len(value) >= markSize {
			known[value[:markSize]] = true
			value = value[markSize:]
		}
	}
	return func(name string) bool { return known[markOf(name)] }
}
