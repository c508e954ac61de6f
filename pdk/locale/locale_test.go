package locale_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/hako-run/hako/pdk/locale"
)

var (
	gone  = locale.Text{"en": "there is no file %q: %w", "ja": "ファイル %q はありません: %w"}
	again = locale.Text{"en": "%[1]s; tried %[2]d times", "ja": "%[2]d 回試しました。%[1]s"}
)

func TestIn(t *testing.T) {
	t.Parallel()
	colour := locale.Text{"en": "colour", "en-US": "color", "ja": "色", "zh-Hant": "顏色"}
	for language, want := range map[string]string{
		"": "colour", "en": "colour", "EN-us": "color", "en-GB": "colour", "ja-JP": "色", "zh-hant-TW": "顏色",
		"zh": "colour", "fr": "colour", "-": "colour",
	} {
		if got := colour.In(language); got != want {
			t.Errorf("%q: %q, want %q", language, got, want)
		}
	}
	if got := (locale.Text{"ja": "色", "de": "Farbe"}).In("fr"); got != "Farbe" {
		t.Errorf("without English: %q", got)
	}
	if got := locale.Text(nil).In("en"); got != "" {
		t.Errorf("nothing: %q", got)
	}
}

func TestErrorf(t *testing.T) {
	t.Parallel()
	err := error(again.Errorf(gone.Errorf("a", fs.ErrNotExist), 3))
	for language, want := range map[string]string{
		"en": `there is no file "a": file does not exist; tried 3 times`,
		"ja": `3 回試しました。ファイル "a" はありません: file does not exist`,
	} {
		for _, err := range []error{err, fmt.Errorf("wrapped: %w", err)} {
			if got := locale.In(err, language); got != want {
				t.Errorf("%s: %q, want %q", language, got, want)
			}
		}
	}
	if got := err.Error(); got != locale.In(err, "en") {
		t.Errorf("Error() is %q", got)
	}
}

func TestUnwrap(t *testing.T) {
	t.Parallel()
	if err := gone.Errorf("a", fs.ErrNotExist); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v does not wrap", err)
	}
	if err := again.Errorf(fs.ErrNotExist, 1); errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v wraps", err)
	}
	var inner *locale.Error
	if wraps := (locale.Text{"en": "x: %w"}).Errorf(gone.Errorf("a", fs.ErrNotExist)); !errors.As(errors.Unwrap(wraps),
		&inner) {
		t.Errorf("%v does not wrap its error", wraps)
	}
}

func TestInOthers(t *testing.T) {
	t.Parallel()
	if got := locale.In(fs.ErrNotExist, "ja"); got != "file does not exist" {
		t.Errorf("got %q", got)
	}
	if got := locale.In(nil, "ja"); got != "" {
		t.Errorf("nil: %q", got)
	}
}
