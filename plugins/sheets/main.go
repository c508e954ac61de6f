// Command sheets is a plugin with two tools for Google Sheets: one writes rows, one reads them.
//
// The host signs in as the operator's service account; nothing here knows a token. What the caller wants is checked before
// anything is sent (a1.go, rows.go), each tool is one request (write.go, read.go), and what Google says to it becomes words
// that say what to do (google.go). Rows are appended at most once: a lost answer is reported, never tried again.
package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hako-run/hako/pdk"
)

func init() {
	tool("write_rows_to_google_sheet", write)
	tool("read_google_sheet", read)
}

func main() {}

// failure is a text in two languages, safe to show to a model.
type failure struct{ en, ja string }

func (f *failure) Error() string { return f.en }

// fail formats a failure; both formats get the same arguments.
func fail(en, ja string, args ...any) *failure {
	return &failure{fmt.Sprintf(en, args...), fmt.Sprintf(ja, args...)}
}

// tool registers a handler whose failures are put in the caller's language.
func tool[In any](name string, handle func(context.Context, In) (*pdk.Result, error)) {
	pdk.HandleTool(name, func(ctx context.Context, in In) (*pdk.Result, error) {
		result, err := handle(ctx, in)
		var f *failure
		if errors.As(err, &f) {
			return nil, errors.New(pick(ctx, f.en, f.ja))
		}
		return result, err
	})
}

// pick returns the text in the caller's language.
func pick(ctx context.Context, en, ja string) string {
	if language, _, _ := strings.Cut(pdk.Locale(ctx), "-"); strings.EqualFold(language, "ja") {
		return ja
	}
	return en
}
