package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/pdk/locale"
)

// Codes of faults, which the page knows.
const (
	codeUnauthenticated = "unauthenticated"
	codeForbidden       = "forbidden"
	codeCSRF            = "csrf"
	codeLimited         = "limited"
	codeNotFound        = "not_found"
	codeInvalid         = "invalid"
	codeConflict        = "conflict"
	codeTooLarge        = "too_large"
	codeUnavailable     = "unavailable"
	codeInternal        = "internal"
)

var statuses = map[string]int{
	codeUnauthenticated: http.StatusUnauthorized, codeForbidden: http.StatusForbidden, codeCSRF: http.StatusForbidden,
	codeLimited: http.StatusTooManyRequests, codeNotFound: http.StatusNotFound, codeInvalid: http.StatusBadRequest,
	codeConflict: http.StatusConflict, codeTooLarge: http.StatusRequestEntityTooLarge,
	codeUnavailable: http.StatusServiceUnavailable, codeInternal: http.StatusInternalServerError,
}

// fault is an error that the page shows.
type fault struct {
	code         string
	text, remedy manifest.Text
	// role is the required role.
	role Role
	// retry is the time until the next attempt, in seconds.
	retry int
	// ask is a changed proposal. fields are errors by field of a form.
	ask    *ask
	fields map[string]manifest.Text
}

func (f *fault) Error() string { return f.text.In("en") }

// said returns a text in English and, if japaneseFormats has the format, in Japanese. A format that is only "%v" passes
// an error on, in the languages that it has.
func said(format string, args ...any) manifest.Text {
	text := manifest.Text{"en": fmt.Sprintf(format, args...)}
	if translated := japanese(format, args...); translated != "" {
		text["ja"] = translated
	} else if format == "%v" {
		if err, ok := args[0].(error); ok {
			text["ja"] = locale.In(err, "ja") // in English where it has no other language
		}
	}
	return text
}

var (
	faultHost = &fault{code: codeForbidden, text: manifest.Text{
		"en": "This server does not serve the host name in the address bar.", "ja": "このサーバーは、アドレス欄の名前では応答しません。",
	}, remedy: manifest.Text{
		"en": "Use localhost, or have the name set as console.url or in http.hosts.",
		"ja": "localhost を使うか、console.url または http.hosts にその名前を設定してください。",
	}}
	faultOrigin = &fault{code: codeCSRF, text: manifest.Text{
		"en": "This request comes from another site.", "ja": "このリクエストは別のサイトから送られました。",
	}, remedy: manifest.Text{
		"en": "Open the console itself. Behind a proxy, set console.url to the address that people use.",
		"ja": "コンソールを直接開いてください。プロキシーの背後では、利用者が使うアドレスを console.url に設定します。",
	}}
	faultCSRF = &fault{code: codeCSRF, text: manifest.Text{
		"en": "This request lacks the CSRF token of your session.", "ja": "このリクエストにはセッションのトークンがありません。",
	}, remedy: manifest.Text{"en": "Reload the page.", "ja": "ページを再読み込みしてください。"}}
	faultNotLoggedIn = &fault{code: codeUnauthenticated, text: manifest.Text{
		"en": "You are not logged in.", "ja": "ログインしていません。",
	}, remedy: manifest.Text{"en": "Log in.", "ja": "ログインしてください。"}}
	faultBadCredentials = &fault{code: codeUnauthenticated, text: manifest.Text{
		"en": "This token or link is not valid here: it is wrong, has expired or was used.",
		"ja": "このトークンまたはリンクは無効です。誤っているか、期限切れか、使用済みです。",
	}, remedy: manifest.Text{
		"en": "Ask the operator of this hako for a new one; hako console prints a link.",
		"ja": "この hako の管理者に新しいものを依頼してください。リンクは hako console で発行できます。",
	}}
	faultStore = &fault{code: codeUnavailable, text: manifest.Text{
		"en": "The store is unavailable.", "ja": "現在、ストアを利用できません。",
	}, remedy: manifest.Text{"en": "Try again; hako's log has the reason.",
		"ja": "しばらくしてから再度お試しください。理由は hako のログにあります。"}}
	faultInternal = &fault{code: codeInternal, text: manifest.Text{
		"en": "hako had an internal error; its log has the details.", "ja": "hako の内部エラーです。詳細はログにあります。",
	}}
)

// faultRole is the response when the person needs another role.
func faultRole(has, needed Role) *fault {
	return &fault{code: codeForbidden, role: needed, text: manifest.Text{
		"en": fmt.Sprintf("This needs the role %s; yours is %s.", needed, has),
		"ja": fmt.Sprintf("この操作には %s の役割が必要です (現在の役割: %s)。", needed, has),
	}, remedy: manifest.Text{
		"en": "Ask somebody who has that role, or have yours changed (console.tokens, console.oidc.roles).",
		"ja": "その役割を持つ人に依頼するか、役割の変更を依頼してください (console.tokens、console.oidc.roles)。",
	}}
}

// faultLimited is the response when a limit was exceeded, with the time to wait.
func faultLimited(wait time.Duration) *fault {
	seconds := int(math.Ceil(wait.Seconds()))
	return &fault{code: codeLimited, retry: seconds, text: manifest.Text{
		"en": fmt.Sprintf("Too many attempts: try again in %d seconds.", seconds),
		"ja": fmt.Sprintf("試行回数が多すぎます。%d 秒後に再度お試しください。", seconds),
	}}
}

func notFound(kind, name string) *fault {
	return &fault{code: codeNotFound, text: said("there is no "+kind+" %q", name)}
}

func invalid(format string, args ...any) *fault {
	return &fault{code: codeInvalid, text: said(format, args...)}
}

// faultOf converts an error to a fault. It is nil for errors that are not for people and belong in the log.
func faultOf(err error) *fault {
	var f *fault
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &large):
		return &fault{code: codeTooLarge, text: said("the request is larger than %d bytes", large.Limit)}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &fault{code: codeUnavailable, text: said("the request was canceled")}
	case errors.Is(err, store.ErrFull), errors.Is(err, store.ErrLocked), errors.Is(err, store.ErrReadOnly),
		errors.Is(err, store.ErrCorrupt),
		errors.Is(err, store.ErrUnreachable), errors.Is(err, bearer.ErrUnavailable):
		return faultStore
	}
	return nil
}

// faultJSON is a fault as the page receives it.
type faultJSON struct {
	Error struct {
		Code       string `json:"code"`
		Text       string `json:"text"`
		Remedy     string `json:"remedy,omitempty"`
		Role       Role   `json:"role,omitempty"`
		RetryAfter int    `json:"retryAfter,omitempty"`
		// Fields are error texts by field.
		Fields map[string]string `json:"fields,omitempty"`
	} `json:"error"`
	Ask *ask `json:"ask,omitempty"`
}

// writeFault responds with a fault.
func writeFault(w http.ResponseWriter, language string, f *fault) {
	var body faultJSON
	e := &body.Error
	e.Code, e.Text, e.Remedy, e.Role, e.RetryAfter = f.code, f.text.In(language), f.remedy.In(language), f.role, f.retry
	body.Ask = f.ask
	for field, text := range f.fields {
		if e.Fields == nil {
			e.Fields = map[string]string{}
		}
		e.Fields[field] = text.In(language)
	}
	if f.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.retry))
	}
	writeJSON(w, statuses[f.code], &body)
}

// writeJSON responds with JSON. It escapes the special characters of HTML, as a further defense.
func writeJSON(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		status, data = http.StatusInternalServerError,
			[]byte(`{"error":{"code":"internal","text":"hako had an internal error."}}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // fails if the client is gone
}
