// Command files is a plugin with tools for the text files of granted directories: read, write, list, search, move,
// delete.
//
// The host decides what it can reach: /workspace and a mount for each further root. The plugin decides how text is
// read and written: it detects encodings, refuses files that are no text, replaces files atomically and never writes
// executables. Every refusal names the rule and the remedy in the caller's language.
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
