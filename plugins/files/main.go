// Command files is a plugin with tools for the text files of one granted directory: read, write, list, search, move, delete.
//
// What it can reach is the host's business: the mount /workspace knows nothing outside of itself. The plugin adds what a mount
// cannot know: that text is text, in which encoding, that a write is atomic, and that nothing executable is written.
// Every refusal says which rule and what to do instead, in the caller's language.
package main

import (
	"context"
	"errors"
	"strings"

	"github.com/hako-run/hako/pdk"
)

// root is the mount as the guest sees it. Tests put a directory of their own here.
var root = "/workspace"

func init() {
	tool("file_read", read)
	tool("file_write", write)
	tool("file_list", list)
	tool("file_search", search)
	tool("file_stat", stat)
	tool("file_move", move)
	tool("delete_file", remove)
}

func main() {}

// tool registers a handler whose refusals are put in the caller's language.
func tool[In any](name string, handle func(context.Context, In) (*pdk.Result, error)) {
	pdk.HandleTool(name, func(ctx context.Context, in In) (*pdk.Result, error) {
		result, err := handle(ctx, in)
		var refused refusal
		if errors.As(err, &refused) && japanese(ctx) {
			return nil, errors.New(refused.ja)
		}
		return result, err
	})
}

// japanese reports whether the caller wants Japanese.
func japanese(ctx context.Context) bool {
	language, _, _ := strings.Cut(pdk.Locale(ctx), "-")
	return strings.EqualFold(language, "ja")
}
