// Command sheets is a plugin with two tools for Google Sheets: one writes rows, one reads them.
//
// The host signs in as the operator's service account, and the plugin never sees a token. Arguments are checked before
// anything is sent (a1.go, rows.go), each tool makes one request (write.go, read.go), and Google's errors are
// translated into what the caller can do (google.go). Rows are appended at most once: if the response is lost, the
// result says what may have happened, because Google accepts no idempotency key.
package main

import (
	"github.com/hako-run/hako/pdk"
	"github.com/hako-run/hako/pdk/locale"
)

func init() {
	pdk.HandleTool("write_rows_to_google_sheet", write)
	pdk.HandleTool("read_google_sheet", read)
}

func main() {}

// fail formats a failure, safe to show to a model; both formats get the same arguments.
func fail(en, ja string, args ...any) error { return locale.Text{"en": en, "ja": ja}.Errorf(args...) }
