// Command files is a plugin with tools for the text files of granted directories: read, write, list, search, move,
// delete.
//
// What it can reach is the host's business: its mounts, /workspace and one for each further root, know nothing outside
// of themselves. The plugin adds what a mount cannot know: that text is text, in which encoding, that a write is
// atomic, and that nothing executable is written. Every refusal says which rule and what to do instead, in the caller's
// language.
package main

import "github.com/hako-run/hako/pdk"

// workspaceDir is the workspace as the guest sees it. Tests put a directory of their own here.
var workspaceDir = mount

func init() {
	pdk.HandleTool("file_read", read)
	pdk.HandleTool("file_write", write)
	pdk.HandleTool("file_list", list)
	pdk.HandleTool("file_search", search)
	pdk.HandleTool("file_stat", stat)
	pdk.HandleTool("file_move", move)
	pdk.HandleTool("delete_file", remove)
}

func main() {}
